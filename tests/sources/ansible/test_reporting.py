"""The lines of a play's report: bounded, and never trusted to be the plugin's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.sources.ansible.reporting import (
    MAX_LINE,
    HostTotals,
    NoHosts,
    PlayReport,
    ReportError,
    State,
    TaskResult,
    TaskStarted,
    Totals,
    read_event,
)

RESULT: dict[str, Any] = {
    "event": "result",
    "state": "changed",
    "ignored": False,
    "name": "Write",
    "position": "/srv/site/roles/x/tasks/main.yml:4",
    "module": "copy",
    "role": "x",
    "host": "localhost",
    "delegated": "",
    "handler": False,
    "notifies": ["restart"],
    "asynchronous": False,
    "censored": False,
    "message": "",
    "diff": "+a",
    "items": 0,
    "started": 1.5,
    "seconds": 0.2,
}


def line(**fields: object) -> bytes:
    return json.dumps(RESULT | fields).encode()


def test_a_result_names_its_task_below_the_playbooks_folder() -> None:
    found = read_event(line(), "/srv/site")
    assert isinstance(found, TaskResult)
    assert (found.position, found.state, found.notifies) == ("roles/x/tasks/main.yml:4", State.CHANGED, ("restart",))
    assert found.where == 'task "Write" (roles/x/tasks/main.yml:4)'


def test_a_censored_result_has_neither_message_nor_difference() -> None:
    found = read_event(line(censored=True, message="hunter2", diff="hunter2"), "")
    assert isinstance(found, TaskResult)
    assert "hunter2" not in repr(found)


def test_other_events_are_read() -> None:
    start = {"event": "start", "name": "a", "position": "/p/s.yml:3", "module": "copy"}
    assert read_event(json.dumps(start).encode(), "/p") == TaskStarted("a", "s.yml:3", "copy")
    stats = {"event": "stats", "hosts": {"n": {"ok": 2, "changed": 1, "new": 7}}}
    assert read_event(json.dumps(stats).encode(), "") == Totals((("n", HostTotals(ok=2, changed=1)),))
    assert read_event(b'{"event": "nohosts"}', "") == NoHosts()


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[]",
        b"{}",
        b'{"event": "other"}',
        b'{"event": "stats", "hosts": 1}',
        line(state="fine"),
        line(started="x"),
        line(notifies=3),
        b"x" * (MAX_LINE + 1),
    ],
    ids=lambda one: one[:24].decode(),
)
def test_a_line_that_is_not_the_plugins_is_an_error(wrong: bytes) -> None:
    with pytest.raises(ReportError):
        read_event(wrong, "")


def test_a_report_says_why_in_one_sentence() -> None:
    failed = read_event(line(state="failed", message="no space"), "/srv/site")
    assert isinstance(failed, TaskResult)
    report = PlayReport((failed,), 2)
    assert not report.succeeded
    assert report.why == 'task "Write" (roles/x/tasks/main.yml:4) on localhost failed: no space'
    running = TaskStarted("Wait", "site.yml:9", "pause")
    ended = PlayReport((), -9, ended="it took longer than 5 seconds", running=running)
    assert ended.why == 'the play was ended in task "Wait" (site.yml:9): it took longer than 5 seconds'
    assert (
        PlayReport((), 4, said="ERROR! no such file").why == "ansible-playbook ended with code 4: ERROR! no such file"
    )

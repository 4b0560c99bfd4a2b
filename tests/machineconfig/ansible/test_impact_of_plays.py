"""What a forecast says of an AnsibleConfig's tasks, from what was read, what was checked and what nodes report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from syncline.machineconfig.ansible.content import File
from syncline.machineconfig.ansible.journal import REPORT, Entry, Journal, report_text
from syncline.machineconfig.ansible.outcome import Outcome, Task
from syncline.machineconfig.ansible.plan import play_of
from syncline.machineconfig.ansible.reading import Found
from syncline.machineconfig.impact.plays import OWN, UNCHECKED, Checked, play_impact

SITE = "- hosts: all\n  tasks:\n    - {name: a file, copy: {content: x, dest: /etc/x}}\n"
FOUND = Found(datetime(2026, 1, 1, tzinfo=UTC), "a" * 40, files={"site.yml": File(SITE.encode())})
CONFIG = {"metadata": {"name": "motd"}, "spec": {"pool": "worker", "playbook": "site.yml"}}
FILE, LATER = Task("a file", "site.yml:3"), Task("later", "site.yml:9", message="no such thing")


def node(phase: str, digest: str) -> Any:
    entry = Entry(phase, digest, tasks=(FILE,))
    return {"metadata": {"name": "node-1", "annotations": {REPORT: report_text(Journal({"motd": entry}))}}}


@pytest.mark.parametrize(
    ("checked", "lines"),
    [
        (None, [UNCHECKED]),
        (Checked(unknown="no root"), ["which tasks would change something is not known: no root"]),
        (Checked(Outcome(), "here"), ["in check mode here it would change nothing"]),
        (
            Checked(Outcome((FILE,), LATER), "here", (LATER,)),
            [
                "in check mode here it would change task 'a file' (site.yml:3)",
                "check mode says nothing of task 'later' (site.yml:9)",
                "the check ended at task 'later' (site.yml:9): no such thing; what follows is not known",
            ],
        ),
    ],
)
def test_a_forecast_says_what_would_change_and_what_is_not_known(checked: Checked | None, lines: list[str]) -> None:
    found = play_impact(CONFIG, FOUND, (), checked)
    assert found is not None
    head, *rest = found.clauses()
    assert head == "AnsibleConfig motd: site.yml of aaaaaaaaaaaa, 1 task, disruption None"
    assert rest == [*lines, OWN]
    json.dumps(found.to_obj())


def test_what_a_node_has_checked_itself_counts_for_the_same_play_alone() -> None:
    digest = play_of(CONFIG, FOUND)[0].digest
    found = play_impact(CONFIG, FOUND, [node("Planned", digest)])
    assert found is not None
    assert found.clauses()[1] == "node-1 has checked: it would change task 'a file' (site.yml:3)"
    for other in (node("Planned", "another"), node("Applied", digest)):
        found = play_impact(CONFIG, FOUND, [other])
        assert found is not None and found.clauses()[1] == UNCHECKED


def test_a_playbook_that_is_refused_has_no_impact() -> None:
    refused = Found(
        FOUND.at, FOUND.commit, files={"site.yml": File(SITE.replace("tasks", "serial: 1\n  tasks").encode())}
    )
    assert play_impact(CONFIG, refused, ()) is None
    assert play_impact(CONFIG, Found(FOUND.at, error="no answer"), ()) is None

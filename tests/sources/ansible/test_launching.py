"""Plays run by the real ansible-playbook, as a child process with bounds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncline.sources.ansible import launching
from syncline.sources.ansible.launching import Play, PlayLimits, find_program, prepare, run_play
from syncline.sources.ansible.reporting import Event, PlayReport, State, TaskResult
from syncline.sources.errors import SourceError

try:
    find_program()
except SourceError as missing:
    pytest.skip(str(missing), allow_module_level=True)

pytestmark = pytest.mark.process


def play(folder: Path, tasks: str, **fields: object) -> Play:
    head = "- hosts: all\n  gather_facts: false\n  handlers: [{name: say, debug: {msg: said}}]\n  tasks:\n"
    (folder / "site.yml").write_text(head + "".join(f"    {each}\n" for each in tasks.strip().splitlines()))
    return Play(str(folder / "site.yml"), **fields)  # type: ignore[arg-type]


def test_a_play_reports_each_task_with_file_and_line(tmp_path: Path) -> None:
    tasks = f"""
- name: Write
  copy: {{dest: {tmp_path}/motd, content: "hello {{{{ who }}}}\\n"}}
  notify: say
- {{name: Left out, debug: {{msg: x}}, when: false}}
- {{name: Forgiven, command: /bin/false, ignore_errors: true}}
- name: Hidden
  copy: {{dest: {tmp_path}/key, content: hunter2}}
  no_log: true
- {{name: Broken, fail: {{msg: no more}}}}
"""
    events: list[Event] = []
    report = run_play(play(tmp_path, tasks, variables={"who": "world"}), seen=events.append)
    by_name = {one.name: one for one in report.results}
    assert {name: one.state for name, one in by_name.items()} == {
        "Write": State.CHANGED,
        "Left out": State.SKIPPED,
        "Forgiven": State.FAILED,
        "Hidden": State.CHANGED,
        "Broken": State.FAILED,
    }
    assert (by_name["Write"].position, by_name["Write"].module, by_name["Write"].notifies) == (
        "site.yml:5",
        "copy",
        ("say",),
    )
    assert "+hello world" in by_name["Write"].diff and (tmp_path / "motd").read_text() == "hello world\n"
    assert by_name["Hidden"].censored and "hunter2" not in repr(report)
    assert by_name["Forgiven"].ignored and [one.name for one in report.failed] == ["Broken"]
    assert report.exit_code == 2 and report.why == 'task "Broken" (site.yml:13) on localhost failed: no more'
    assert [one for one in events if isinstance(one, TaskResult)] == list(report.results)
    assert dict(report.totals)["localhost"].ignored == 1


@dataclass(frozen=True)
class Checked:
    """One run in check mode, which several tests read."""

    report: PlayReport
    folder: Path
    seen: str
    """What a task that runs even in check mode saw of its environment and of its parent's."""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("checked")
    (folder / "ansible.cfg").write_text("[defaults]\nstdout_callback = minimal\n")
    look = f"env > {folder}/seen; tr '\\\\0' '\\\\n' < /proc/$PPID/environ >> {folder}/seen"
    tasks = f"""
- copy: {{dest: {folder}/motd, content: hello}}
- shell: "{look}"
  check_mode: false
"""
    wanted = play(folder, tasks, check=True)
    with (folder / "site.yml").open("a") as playbook:
        playbook.write("- name: Web\n  hosts: web\n  tasks: []\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", "/secret")
        patch.setenv("ANSIBLE_CHECK_MODE_MARKERS", "True")
        report = run_play(wanted, cwd=str(folder))
    assert report.succeeded, report.why
    return Checked(report, folder, (folder / "seen").read_text())


def test_check_mode_changes_nothing_and_shows_the_difference(checked: Checked) -> None:
    assert "+hello" in checked.report.changed[0].diff
    assert not (checked.folder / "motd").exists()


def test_the_child_sees_nothing_of_our_environment_nor_of_a_configuration(checked: Checked) -> None:
    seen = checked.seen
    assert "HOME=" in seen and f"HOME={Path.home()}\n" not in seen
    assert "KUBECONFIG" not in seen and "MARKERS" not in seen


def test_plays_without_hosts_are_named(checked: Checked) -> None:
    assert checked.report.unmatched == ("Web",)


def commands() -> Iterator[str]:
    """Return the command lines of this machine's processes."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield place.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_a_play_that_takes_too_long_is_ended_and_the_task_named(tmp_path: Path) -> None:
    report = run_play(play(tmp_path, "- {name: Wait, command: sleep 609.5}"), limits=PlayLimits(wall_s=6))
    assert report.why == 'the play was ended in task "Wait" (site.yml:5): it took longer than 6 seconds'
    assert not [one for one in commands() if "609.5" in one or str(tmp_path) in one], "nothing of it goes on"


def test_a_play_ends_when_its_reader_refuses_a_result(tmp_path: Path) -> None:
    def refuse(event: Event) -> None:
        if isinstance(event, TaskResult):
            raise RuntimeError("enough")

    tasks = f"- {{name: One, debug: {{msg: x}}}}\n- copy: {{dest: {tmp_path}/second, content: x}}"
    with pytest.raises(RuntimeError, match="enough"):
        run_play(play(tmp_path, tasks), seen=refuse)


def test_a_report_that_is_too_long_ends_the_play(tmp_path: Path) -> None:
    tasks = "- {name: Much, debug: {msg: \"{{ 'x' * 3000 }}\"}, loop: [1, 2]}"
    report = run_play(play(tmp_path, tasks), limits=PlayLimits(output_bytes=300))
    assert report.ended == "it printed more than 300 bytes"


def test_a_playbook_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text("- hosts: all\n  tasks: {name: x\n")
    report = run_play(Play(str(tmp_path / "site.yml")))
    assert report.exit_code != 0 and "site.yml" in report.why and not report.results


def test_passwords_are_written_for_the_child_alone(tmp_path: Path) -> None:
    prepared = prepare(
        Play("/p/site.yml", vault_password="hunter2", variables={"a": "b"}), tmp_path, ("ansible-playbook",)
    )
    assert "hunter2" not in repr(prepared) and "hunter2" not in repr(Play("/p", vault_password="hunter2"))
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o600
    assert prepared.argv[-2:] == ("--", "/p/site.yml")


def test_without_ansible_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching.importlib.util, "find_spec", lambda _: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(launching.shutil, "which", lambda _: None)  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match=r"pip install 'syncline\[ansible\]'"):
        find_program()


def test_ansible_is_never_imported() -> None:
    assert not [name for name in sys.modules if name.split(".")[0] == "ansible"]

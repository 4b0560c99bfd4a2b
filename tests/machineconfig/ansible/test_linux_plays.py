"""Ansible as the agent of a Linux machine runs it: the real program, on files below a folder of the test."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.hosts.linuxhost import LinuxHost
from syncline.hosts.linuxplays import LinuxPlays, outcome_of
from syncline.machineconfig.ansible.content import File, pack
from syncline.machineconfig.ansible.journal import APPLIED, FAILED, JOURNAL, NOT_IDEMPOTENT, Journal
from syncline.machineconfig.ansible.order import Order, Player
from syncline.machineconfig.ansible.outcome import Outcome, Task
from syncline.machineconfig.ansible.play import CONTENT, PLAY, ROOT, Play
from syncline.machineconfig.ansible.running import PlayFailed, Running, WantsReboot
from syncline.machineconfig.generating.making import data_file, file_of, made_config
from syncline.machineconfig.render.rendering import Release
from syncline.sources.ansible.launching import find_program
from syncline.sources.ansible.reporting import PlayReport, State, TaskResult
from syncline.sources.errors import SourceError

try:
    find_program()
except SourceError as missing:
    pytest.skip(str(missing), allow_module_level=True)

pytestmark = pytest.mark.process


def order_of(texts: dict[str, str], *, check: bool = False, **more: Any) -> Order:
    packed = pack({path: File(text.encode()) for path, text in texts.items()})
    secrets, vault, reboots = (more.pop(key, None) for key in ("secrets", "vault", "reboots"))
    play = Play("motd", hashlib.sha256(packed).hexdigest(), **({"playbook": "site.yml"} | more))
    return Order(play, packed, check, tuple(reboots or ()), secrets, vault)


def run(texts: dict[str, str], **more: Any) -> Outcome:
    return LinuxPlays(Path("/"), True, VirtualClock()).play("edge-1", order_of(texts, **more))


def tasks(*lines: str, facts: bool = False) -> str:
    head = f"- hosts: all\n  gather_facts: {str(facts).lower()}\n  tasks:\n"
    return head + "".join(f"    {line}\n" for line in lines)


SITE = """\
- hosts: worker
  become: true
  gather_subset: [min]
  vars_files: [secret.yml]
  roles:
    - role: message
      tags: [words]
  tasks:
    - name: tried
      block:
        - command: "false"
      rescue:
        - name: rescued
          copy: {content: rescued, dest: "{{ root }}/rescued"}
    - import_tasks: more.yml
    - name: hidden
      copy: {content: "{{ token }} {{ vaulted }}", dest: "{{ root }}/token", mode: "0600"}
      no_log: true
    - name: not now
      copy: {content: x, dest: "{{ root }}/skipped"}
      tags: [never]
"""
FEATURES = {
    "site.yml": SITE,
    "more.yml": "- name: included\n  file: {path: '{{ root }}/dir', state: directory}\n",
    "roles/message/tasks/main.yml": (
        "- name: words\n  template: {src: words.j2, dest: '{{ root }}/words'}\n  notify: tell\n"
    ),
    "roles/message/handlers/main.yml": "- name: tell\n  copy: {content: told, dest: '{{ root }}/told'}\n",
    "roles/message/templates/words.j2": "{{ size }} words of {{ inventory_hostname }} on {{ ansible_facts.system }}\n",
}


VAULTED = """\
vaulted: !vault |
          $ANSIBLE_VAULT;1.1;AES256
          31393562303831306539316339303638666331313733656532626437346636393435623463383932
          3439373133356263643931646630396230343438343035360a633964353535633764616130323436
          64386163636333363864633964343531303139336466353739346634323235373862356539656335
          3538663662326138320a613530326163363433383861336366323066336363666335323931393065
          3130
"""
"""``treasure``, encrypted with the password ``open sesame``."""


def test_features_of_a_playbook_work_and_its_secrets_are_nowhere(tmp_path: Path) -> None:
    """become, facts, handlers, tags, blocks with rescue, roles, templates, includes, vault, no_log."""
    root = tmp_path / "root"
    root.mkdir()
    more: dict[str, Any] = {
        "variables": {"root": str(root), "size": 3},
        "groups": ("worker",),
        "secrets": Secret(json.dumps({"token": "s3cret"})),
        "vault": Secret("open sesame\n"),
    }
    done = run(FEATURES | {"secret.yml": VAULTED}, **more)
    assert done.ok, done
    assert {each.name for each in root.iterdir()} == {"words", "told", "rescued", "dir", "token"}
    assert (root / "words").read_text() == "3 words of edge-1 on Linux\n"
    assert (root / "token").read_text() == "s3cret treasure"
    assert "s3cret" not in repr(done) and "treasure" not in repr(done)
    assert next(task for task in done.changed if task.task.endswith("words")).tags == ("words",)
    again = run(FEATURES | {"secret.yml": VAULTED}, check=True, **more)
    assert again.ok and again.changed == ()


def result(name: str, state: State, **more: Any) -> TaskResult:
    return TaskResult(state, name, "site.yml:1", more.pop("module", "copy"), "edge-1", **more)


def test_a_reboot_with_handlers_that_wait_is_refused() -> None:
    changed = result("change", State.CHANGED, notifies=("late",))
    boot = result("boot", State.FAILED, module="reboot")
    found = outcome_of(PlayReport((changed, boot), 98))
    assert found.failed is not None and "meta: flush_handlers" in found.failed.message
    ran = result("late", State.OK, handler=True)
    assert outcome_of(PlayReport((changed, ran, boot), 98)).reboot is not None


def test_secrets_are_masked_in_names_messages_and_reasons() -> None:
    failed = result("with s3cret", State.FAILED, message="bad s3cret")
    found = outcome_of(PlayReport((failed,), 2), ["s3cret"])
    assert found.failed is not None and "s3cret" not in repr(found)
    assert "s3cret" not in repr(outcome_of(PlayReport((), 4, said="ERROR! s3cret"), ["s3cret"]))
    hidden = result("hidden", State.FAILED, censored=True)
    assert "no_log" in repr(outcome_of(PlayReport((hidden,), 2)))


def test_hosts_that_match_no_node_are_an_error() -> None:
    assert "write hosts: all" in outcome_of(PlayReport((), 0, unmatched=("site",))).error


def test_below_another_root_nothing_is_run() -> None:
    plays = LinuxPlays(Path("/srv/tree"), False, VirtualClock())
    assert "/srv/tree is a directory" in plays.play("edge-1", order_of({"site.yml": "[]"})).error


# -- with the journal --------------------------------------------------------------------------------------------------


@dataclass
class Scripted:
    """A player whose runs come out as they are listed; None: the agent dies."""

    outcomes: list[Outcome | None]
    orders: list[Order] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def play(self, _node: str, order: Order) -> Outcome:
        self.orders.append(order)
        outcome = self.outcomes.pop(0)
        if outcome is None:
            raise SystemExit("killed")
        return outcome


FILE, LATER = Task("a file", "site.yml:4"), Task("later", "site.yml:6")


def running(tmp_path: Path, player: Player, site: str = "", boot: str = "boot-1", **more: Any) -> Running:
    for name in ("tree", "system"):
        (tmp_path / name).mkdir(exist_ok=True)
    order = order_of({"site.yml": site}, variables={"root": str(tmp_path / "tree")}, **more)
    files = [file_of(f"{ROOT}/motd/{PLAY}", order.play.text), data_file(f"{ROOT}/motd/{CONTENT}", order.packed)]
    config = made_config("rendered-worker-a", "worker", Release("1", "1"), files=files)
    return Running("edge-1", LinuxHost(tmp_path / "system", VirtualClock()), player, config, boot)


def of(journal: Journal) -> str:
    return journal.entries["motd"].phase


def test_a_reboot_ends_the_run_without_a_rescue_and_passes_after_the_boot(tmp_path: Path) -> None:
    lines = (
        "- copy: {content: x, dest: '{{ root }}/x'}",
        "- block: [{ansible.builtin.reboot: {reboot_timeout: 5}}]",
        "  rescue: [{file: {path: '{{ root }}/rescued', state: touch}}]",
    )
    real = LinuxPlays(Path("/"), True, VirtualClock())
    with pytest.raises(WantsReboot, match=r"site.yml:5\) reboots the node"):
        running(tmp_path, real, tasks(*lines)).run(["motd"])
    assert [each.name for each in (tmp_path / "tree").iterdir()] == ["x"]
    done = running(tmp_path, real, tasks(*lines), "boot-2").run(["motd"]).entries["motd"]
    assert done.phase == APPLIED and [task.place for task in done.tasks] == ["site.yml:4"]
    assert [each.name for each in (tmp_path / "tree").iterdir()] == ["x"]


def test_a_run_that_ended_well_is_done_once_and_looked_after(tmp_path: Path) -> None:
    player = Scripted([Outcome((FILE,)), Outcome((FILE,)), Outcome(), Outcome((FILE,)), Outcome()])
    mine = running(tmp_path, player)
    assert of(mine.plan(["motd"])) == "Planned"
    assert of(mine.run(["motd"])) == of(mine.run(["motd"])) == APPLIED and len(player.orders) == 3
    drifted = mine.check(["motd"]).entries["motd"]
    assert drifted.phase == "Drifted" and drifted.tasks == (FILE,)
    assert of(mine.check(["motd"])) == APPLIED
    assert [order.check for order in player.orders] == [True, False, True, True, True]


def test_a_check_that_fails_shows_no_drift(tmp_path: Path) -> None:
    mine = running(tmp_path, Scripted([Outcome((FILE,)), Outcome(), Outcome(failed=LATER)]))
    mine.run(["motd"])
    entry = mine.check(["motd"]).entries["motd"]
    assert entry.phase == APPLIED and "the last check ended early: task 'later'" in entry.error


def test_a_failure_names_what_all_its_attempts_changed(tmp_path: Path) -> None:
    mine = running(tmp_path, Scripted([Outcome((FILE,), LATER), Outcome((), LATER), Outcome((LATER,)), Outcome()]))
    for _ in range(2):
        with pytest.raises(PlayFailed, match="1 tasks changed the node: task 'a file'") as failed:
            mine.run(["motd"])
        assert of(failed.value.journal) == FAILED
    done = mine.run(["motd"]).entries["motd"]
    assert done.phase == APPLIED and done.tasks == (FILE, LATER)


def test_a_reboot_that_did_not_happen_is_asked_for_again(tmp_path: Path) -> None:
    player = Scripted([Outcome((FILE,), reboot=LATER), Outcome(reboot=LATER), Outcome(), Outcome()])
    for _ in range(2):
        with pytest.raises(WantsReboot):
            running(tmp_path, player).run(["motd"])
    assert of(running(tmp_path, player, boot="boot-2").run(["motd"])) == APPLIED
    assert [order.reboots for order in player.orders] == [(), (), (LATER.place,), (LATER.place,)]


KERNEL = Task("the kernel", "site.yml:8", tags=("syncline.reboot",))


@pytest.mark.parametrize(
    ("found", "owed"), [(Outcome((KERNEL,), may_reboot=True), "boot-1"), (Outcome(may_reboot=True), "")]
)
def test_a_reboot_follows_if_a_task_that_asks_for_it_changed_something(
    tmp_path: Path, found: Outcome, owed: str
) -> None:
    mine = running(tmp_path, Scripted([found, Outcome()]), disruption="Drain")
    assert mine.run(["motd"]).entries["motd"].boot == owed


@pytest.mark.parametrize("first", [Outcome((KERNEL,), LATER, may_reboot=True), None], ids=["failed", "killed"])
@pytest.mark.parametrize(("boot", "owed"), [("boot-1", "boot-1"), ("boot-2", "")])
def test_a_reboot_that_an_earlier_attempt_needs_is_not_forgotten_unless_it_has_happened(
    tmp_path: Path, first: Outcome | None, boot: str, owed: str
) -> None:
    player = Scripted([first, Outcome((), LATER), Outcome(may_reboot=True), Outcome()])
    with pytest.raises(SystemExit if first is None else PlayFailed):
        running(tmp_path, player, disruption="Drain").run(["motd"])
    with pytest.raises(PlayFailed):
        running(tmp_path, player, boot=boot, disruption="Drain").run(["motd"])
    assert running(tmp_path, player, boot=boot, disruption="Drain").run(["motd"]).entries["motd"].boot == owed


def test_a_task_that_changes_something_each_time_is_named(tmp_path: Path) -> None:
    mine = running(tmp_path, Scripted([Outcome((FILE,)), Outcome((FILE,))]))
    with pytest.raises(PlayFailed, match=r"NotIdempotent: .* task 'a file' \(site.yml:4\)") as failed:
        mine.run(["motd"])
    assert of(failed.value.journal) == NOT_IDEMPOTENT


def test_a_journal_that_is_damaged_makes_every_play_run_again(tmp_path: Path) -> None:
    mine = running(tmp_path, Scripted([Outcome(), Outcome()]))
    mine.host.write(JOURNAL, b"{half")
    assert of(mine.run(["motd"])) == APPLIED


def test_content_that_is_not_the_play_s_is_not_run(tmp_path: Path) -> None:
    mine = running(tmp_path, Scripted([]))
    for file in mine.config["spec"]["config"]["storage"]["files"]:
        file["contents"]["source"] = "data:,x" if file["path"].endswith(CONTENT) else file["contents"]["source"]
    with pytest.raises(PlayFailed, match="SHA-256"):
        mine.run(["motd"])

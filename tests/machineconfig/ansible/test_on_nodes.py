"""AnsibleConfigs on the nodes of a pool, in virtual time: order, drain, budget, failure, reboot, drift."""

from __future__ import annotations

import json
from itertools import pairwise

from tests.machineconfig.ansible.world import CONFIGS, MACHINE_CONFIGS, SITE, AnsibleWorld
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import APIS, POOLS
from tests.machineconfig.test_causes import lines

from syncline.assembly.machines.simulatedplays import drift
from syncline.cli.views.timeline import describe_timeline, draw_timeline
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import annotations_of, dig
from syncline.machineconfig.ansible.journal import APPLIED, DRIFTED, FAILED, JOURNAL, NOT_IDEMPOTENT, read_journal
from syncline.machineconfig.names import CURRENT, DESIRED, STATE
from syncline.machineconfig.nodes.timeline import Stretch, Timeline, timeline_of

ANSIBLE = (*ANSIBLE_CONFIG.group_kind, "")
QUIET = "- hosts: all\n  tasks:\n    - name: a file\n      copy: {content: x, dest: /etc/x}\n"
BOOTS = """\
- hosts: all
  tasks:
    - name: before
      command: {cmd: "true"}
    - name: boot
      ansible.builtin.reboot:
    - name: after
      command: {cmd: "true"}
"""


def timeline(world: AnsibleWorld) -> Timeline:
    nodes = [node for name, node in world.nodes().items() if name.startswith("worker")]
    events = world.get("/api/v1/events")["items"]
    return timeline_of(world.get(f"{POOLS}/worker"), nodes, events, world.clock.now())


def failing(node: str, task: str = "the service", **more: object) -> str:
    return json.dumps({"fails": [{"node": node, "task": task, "message": "no such unit", **more}]})


def test_a_playbook_reaches_every_node_of_its_pool_under_drain_one_after_another() -> None:
    world = AnsibleWorld()
    before = world.reboots()
    world.ask()
    world.until_applied()
    assert [world.entry(f"worker-{index}").phase for index in range(3)] == [APPLIED] * 3
    assert [task.task for task in world.entry("worker-0").tasks] == ["the message", "the service"]
    assert world.reboots() == before and len(world.events("Drain")) == 3
    assert dig(world.config(), "status", "revision") == "a" * 40


def test_tasks_that_say_nothing_disturb_no_node() -> None:
    world = AnsibleWorld()
    world.repository.push("b", site=QUIET)
    world.ask()
    world.until_applied()
    assert world.events("Drain") == [] and world.says("Applied")["status"] == "True"


def test_a_machine_config_and_a_playbook_that_are_due_at_once_share_one_drain_and_one_reboot() -> None:
    world = AnsibleWorld(nodes=2)
    before = world.reboots()
    world.ask(disruption="Reboot")
    world.send("POST", MACHINE_CONFIGS, machine_config("99-a", files(("/etc/a", "x"))))
    world.until_applied(2)
    assert {name: count - before[name] for name, count in world.reboots().items()} == {"worker-0": 1, "worker-1": 1}
    assert len(world.events("Drain")) == 2


def test_a_failed_task_stops_the_pool_names_what_was_done_and_is_retried_until_it_succeeds() -> None:
    world = AnsibleWorld()
    world.ask(fate=failing("worker-1", times=3))
    world.driver.until(lambda: "no such unit" in world.reason("worker-1"), limit_s=900)
    entry = world.entry("worker-1")
    assert entry.phase == FAILED and entry.failed is not None and entry.failed.place == "site.yml:5"
    assert "task 'the service' (site.yml:5) failed on worker-1: no such unit" in world.reason("worker-1")
    assert "1 tasks changed the node: task 'the message'" in world.reason("worker-1")
    waiting = annotations_of(world.nodes()["worker-2"])
    assert waiting[DESIRED] == waiting[CURRENT]
    world.driver.until(lambda: world.says("Degraded")["status"] == "True", limit_s=60)
    told = lines(world, ANSIBLE, "motd")
    assert told[0].startswith("AnsibleConfig motd Degraded") and "1 of 3 nodes have commit aaaaaaaaaaaa" in told[0]
    assert "Node worker-1" in told[1] and "no such unit" in told[1]
    world.until_applied()
    assert lines(world, ANSIBLE, "motd")[0].startswith("AnsibleConfig motd applied")
    assert world.entry("worker-1").phase == APPLIED and world.says("Degraded")["status"] == "False"


def test_a_playbook_that_is_taken_back_half_way_is_run_again_as_it_was_before() -> None:
    """The files of the old config come back at once; what Ansible did half-way is put right by the old playbook."""
    world = AnsibleWorld(nodes=1)
    world.ask()
    world.until_applied(1)
    first = world.entry("worker-0").applied
    world.repository.push("b", site=SITE % "other")
    world.merge(
        f"{CONFIGS}/motd", {"metadata": {"annotations": {"syncline.dev/simulated-outcome": failing("worker-0")}}}
    )
    world.driver.until(lambda: world.entry("worker-0").phase == FAILED, limit_s=900)
    world.merge(f"{CONFIGS}/motd", {"metadata": {"annotations": {"syncline.dev/simulated-outcome": None}}})
    world.repository.push("c", site=SITE % "hello")
    world.driver.until(lambda: world.entry("worker-0").applied == first and world.all_done(), limit_s=7200)
    assert world.entry("worker-0").phase == APPLIED


def test_a_task_that_reboots_is_left_to_the_agent_and_the_play_goes_on_after_it() -> None:
    world = AnsibleWorld()
    before = world.reboots()
    world.repository.push("b", site=BOOTS)
    world.ask(fate=json.dumps({"seconds": 60}))
    world.until_applied()
    assert {count - before[name] for name, count in world.reboots().items()} == {1}
    assert len(world.events("Drain")) == 3
    for each in timeline(world).nodes:
        first, boots, second = (span for span in each.spans if span.stretch in (Stretch.PLAYS, Stretch.REBOOTS))
        assert (first.stretch, boots.stretch, second.stretch) == (Stretch.PLAYS, Stretch.REBOOTS, Stretch.PLAYS)
        assert first.since < first.until == boots.since and boots.until == second.since, "both parts, and between them"
        assert all(one.until == two.since for one, two in pairwise(each.spans)), each.spans


def test_a_second_run_must_change_nothing() -> None:
    world = AnsibleWorld(nodes=1)
    world.ask(fate=json.dumps({"never": ["the message"]}))
    world.driver.until(lambda: "NotIdempotent" in world.reason("worker-0"), limit_s=900)
    assert world.entry("worker-0").phase == NOT_IDEMPOTENT
    assert "task 'the message' (site.yml:3)" in world.reason("worker-0")


def test_drift_is_found_by_the_check_said_on_the_node_and_gone_when_it_is_put_right() -> None:
    world = AnsibleWorld(nodes=2)
    world.ask(checkInterval="10m")
    world.until_applied(2)
    assert world.hosts is not None
    host = world.hosts.host("worker-1")
    drift(host, "motd", "the message")
    world.driver.until(lambda: "drift" in world.reason("worker-1"), limit_s=1200)
    assert world.entry("worker-1").phase == DRIFTED
    assert world.reason("worker-1") == "AnsibleConfig motd: drift: a run would change task 'the message' (site.yml:3)"
    assert annotations_of(world.nodes()["worker-1"])[STATE] == "Degraded"
    drift(host, "motd", "")
    world.until_applied(2)
    assert world.entry("worker-1").phase == APPLIED


def test_a_run_that_takes_its_time_holds_the_pool_as_long() -> None:
    world = AnsibleWorld(nodes=2)
    world.ask(fate=json.dumps({"seconds": 600}))
    assert 1200 <= world.until_applied(2) < 1600
    found = timeline(world)
    for each in found.nodes:
        (run,) = [span for span in each.spans if span.stretch is Stretch.PLAYS]
        assert run.until is not None and 600 <= (run.until - run.since).total_seconds() < 660
        assert all(one.until == two.since for one, two in pairwise(each.spans)), each.spans
    assert "▚▚▚" in describe_timeline(found) and "playbook runs" in draw_timeline(found)


def test_a_held_or_paused_pool_runs_no_playbook() -> None:
    world = AnsibleWorld(nodes=1)
    world.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    world.ask()
    world.driver.advance(900)
    assert world.applied(0) and world.says("Ready")["status"] == "True"
    world.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    world.until_applied(1)


def test_a_playbook_that_is_refused_names_file_and_line_and_touches_no_node() -> None:
    world = AnsibleWorld(nodes=1)
    world.repository.push("b", site="- hosts: all\n  serial: 1\n  tasks: []\n")
    world.ask()
    world.driver.until(lambda: world.says("Ready").get("status") == "False", limit_s=60)
    assert "site.yml:2: serial is refused" in world.says("Ready")["message"]
    assert dig(world.get(f"{APIS}/machineconfigs"), "items", 0) and world.events("Cordon") == []


def test_a_repository_that_cannot_be_read_leaves_what_is_in_force() -> None:
    world = AnsibleWorld(nodes=1)
    world.ask()
    world.until_applied(1)
    target, world.repository.error = world.wanted(), "the host does not answer"
    world.driver.advance(600)
    assert world.wanted() == target and world.says("Ready")["reason"] == "Unreadable"


def test_a_deleted_ansible_config_goes_with_its_machine_config_and_leaves_the_journal_empty() -> None:
    world = AnsibleWorld(nodes=1)
    world.ask()
    world.until_applied(1)
    target = world.wanted()
    world.send("DELETE", f"{CONFIGS}/motd")
    world.driver.until(lambda: world.wanted() != target and world.all_done(), limit_s=900)
    assert world.hosts is not None
    assert read_journal(world.hosts.host("worker-0").read(JOURNAL)).entries == {}
    assert world.events("Reboot") == []

"""The parts of an impact, each by its rule: what was measured, what an API would store, who waits for whom."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.machineconfig.rendering import files, machine_config

from syncline.base.clock import EPOCH, format_time
from syncline.control.cache import Cache
from syncline.control.plan import Patch
from syncline.kube.kinds import machineconfiguration as kinds
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, gvk_of, name_of
from syncline.kube.patching.managedfields import LAST_APPLIED
from syncline.machineconfig.agent.actions import Action, Consequence
from syncline.machineconfig.agent.planning.changes import Changes
from syncline.machineconfig.agent.planning.notes import POST_ACTION, REBOOTING
from syncline.machineconfig.agent.planning.work import Irreconcilable, Work, work_of
from syncline.machineconfig.drain import observe as drain_observing
from syncline.machineconfig.impact.causes import Sides, causes_of, severity
from syncline.machineconfig.impact.forecast import kinds_read
from syncline.machineconfig.impact.pace import ASSUMED, Length, Pace, sampled
from syncline.machineconfig.impact.report import about
from syncline.machineconfig.impact.rollout import Rollout, State
from syncline.machineconfig.impact.scratch import Scratch
from syncline.machineconfig.impact.waiting import failing_words, why_it_waits
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    LAST_DRAIN,
    REASON,
    STATE,
    TOPOLOGY,
)
from syncline.machineconfig.policies.model import effective_policies
from syncline.machineconfig.pools import observe as pool_observing
from syncline.machineconfig.pools.candidates import CANARIES
from syncline.machineconfig.pools.observe import NODE
from syncline.machineconfig.render.fixes import fix_for

A, B = "rendered-worker-a", "rendered-worker-b"
POLICIES = effective_policies(None)
QUICK = Pace(*(Length(seconds) for seconds in (10, 1, 2, 3, 100)))


def typed(kind: Any, name: str, spec: Obj, **metadata: Any) -> Obj:
    meta = {"name": name, "uid": f"u-{name}"} | metadata
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def rendered(name: str, config: Obj | None = None, **spec: Any) -> Obj:
    return typed(
        kinds.MACHINE_CONFIG, name, machine_config("x", config or {"ignition": {"version": "3.2.0"}}, **spec)["spec"]
    )


def node(name: str, *, at: str = A, to: str = "", state: str = "Done", **notes: str) -> Obj:
    labels = {"node-role.kubernetes.io/worker": ""}
    have = {CURRENT: at, DESIRED: to or at, STATE: state} | notes
    metadata = {"name": name, "labels": labels, "annotations": have, "uid": name}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": ready}


def worker(target: str = B, **spec: Any) -> Obj:
    selectors = {"nodeSelector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}}}
    return typed(kinds.MACHINE_CONFIG_POOL, "worker", selectors | {"configuration": {"name": target}} | spec)


def scratch(*objects: Obj) -> Scratch:
    look = Cache(Mapper())
    controller = typed(kinds.CONTROLLER_CONFIG, "machine-config-controller", {})
    for obj in (controller, *objects):
        look.put(gvk_of(obj).group_kind, obj)
    indices: Any = pool_observing.indices() | drain_observing.indices()
    return Scratch(look, {*kinds_read(()), kinds.KUBELET_CONFIG.group_kind}, indices, ())


def played(*objects: Obj) -> Rollout:
    found = Rollout(scratch(*objects), EPOCH, {"worker": QUICK})
    found.simulate()
    return found


def told(one: Rollout) -> list[tuple[str, int, str, float | None]]:
    return [
        (turn.node, turn.wave, str(turn.state), (turn.ended - EPOCH).total_seconds() if turn.ended else None)
        for turn in one.turns
    ]


FILE = rendered(B, files(("/etc/motd", "x")))


# -- who goes when ----------------------------------------------------------------------------------------------------


def test_nodes_follow_one_another_with_five_seconds_of_rest_before_the_first() -> None:
    one = played(worker(), rendered(A), FILE, node("n0"), node("n1"))
    assert told(one) == [("n0", 1, "done", 116.0), ("n1", 2, "done", 227.0)]
    assert [(turn.began - EPOCH).total_seconds() for turn in one.turns] == [5.0, 116.0]


def test_a_single_control_plane_node_reboots_without_a_drain() -> None:
    one = played(worker(), rendered(A), FILE, node("n0", **{TOPOLOGY: "SingleReplica"}))
    assert not one.turns[0].drains and told(one) == [("n0", 1, "done", 106.0)]


def test_what_is_under_way_takes_a_place_and_then_its_turn() -> None:
    busy = node("n0", to=B, state="Working", **{DESIRED_DRAIN: f"drain-{B}", LAST_DRAIN: f"drain-{B}"})
    one = played(worker(), rendered(A), FILE, busy, node("n1"))
    assert one.turns[0].under_way and told(one) == [("n0", 0, "done", 101.0), ("n1", 1, "done", 212.0)]


def test_a_machine_that_boots_just_now_comes_back_and_then_gets_the_newer_config() -> None:
    away = node("n0", to=B, state="Working", **{POST_ACTION: REBOOTING, LAST_DRAIN: f"drain-{B}"})
    away["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    away["spec"] = {"unschedulable": True}
    newer = rendered("rendered-worker-c", files(("/etc/other", "x")))
    one = played(worker("rendered-worker-c"), rendered(A), FILE, newer, away, node("n1"))
    assert told(one) == [("n0", 0, "done", 100.0), ("n0", 1, "done", 211.0), ("n1", 2, "done", 322.0)]


def test_a_node_that_cannot_take_it_on_stops_its_pool() -> None:
    folder = rendered(B, {"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/var/x"}]}})
    one = played(worker(), rendered(A), folder, node("n0"), node("n1"))
    assert told(one) == [("n0", 1, "refused", None)]
    assert "ignition directories section contains changes" in one.turns[0].reason
    assert [name_of(each) for each in one.left(worker())] == ["n1"]


def test_a_config_that_is_gone_is_refused_and_named() -> None:
    one = played(worker(), FILE, node("n0"))
    assert one.turns[0].state is State.REFUSED and f'"{A}" not found' in one.turns[0].reason


def test_a_machine_that_is_joining_has_the_new_config_from_the_start() -> None:
    joining = node("n0", at="")
    one = played(worker(), rendered(A), FILE, joining)
    assert not one.turns and not one.left(worker())


def test_drift_takes_a_place_and_is_no_update() -> None:
    """A node that has what it is to have and is Degraded all the same."""
    drifted = node("n0", at=B, state="Degraded", **{REASON: "content mismatch"})
    one = played(worker(), rendered(A), FILE, drifted, node("n1"))
    assert not one.turns and [name_of(each) for each in one.left(worker())] == ["n1"]
    nodes = one.scratch.cache.objects(NODE)
    assert why_it_waits(nodes[1], one.waits(worker()), 1) == "n0 takes all that may be unavailable (maxUnavailable 1)"
    assert failing_words(nodes[0]) == "node n0 is Degraded: content mismatch"


@pytest.mark.parametrize(
    ("limit", "notes", "why"),
    [
        (-1, {}, "maxUnavailable is -1: no node may ever begin"),
        (2, {CANARIES: "1"}, "all canaries have to be at the new config before any other node begins"),
    ],
)
def test_the_turn_of_a_node_does_not_come_for_the_reason_that_the_pool_controller_has(
    limit: int, notes: dict[str, str], why: str
) -> None:
    """The canary cannot take the config on."""
    folder = rendered(B, {"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/var/x"}]}})
    pool = worker(maxUnavailable=limit)
    pool["metadata"]["annotations"] = notes
    one = played(pool, rendered(A), folder, node("n0"), node("n1"))
    last = one.left(pool)[-1]
    assert why_it_waits(last, one.waits(pool), limit) == why


def test_a_limit_that_is_none_is_an_error_of_the_pool() -> None:
    one = played(worker(maxUnavailable="many"), rendered(A), FILE, node("n0"))
    assert not one.turns and "invalid value for IntOrString" in one.errors["worker"]


def test_a_node_that_comes_to_an_image_takes_it_along() -> None:
    """Image mode: the image is staged instead of the config's own."""
    moving = node("n0", to=B, state="Working", **{DESIRED_IMAGE: "registry/os@sha256:1"})
    one = played(worker(), rendered(A), rendered(B), moving)
    (turn,) = one.turns
    assert turn.work is not None and turn.work.changes.os_update and turn.work.changes.image_mode
    after = one.scratch.cache.get(ObjectRef("", "Node", "", "n0"))
    assert annotations_of(after or {})[CURRENT_IMAGE] == "registry/os@sha256:1"


def test_the_play_is_the_same_in_whatever_order_objects_come() -> None:
    objects = [worker(), rendered(A), FILE, node("n0"), node("n1")]
    assert told(played(*objects)) == told(played(*reversed(objects)))


# -- an API server on paper -------------------------------------------------------------------------------------------


def test_what_the_last_manifest_had_and_this_one_has_not_goes() -> None:
    before = machine_config("99-a", kernelArguments=["quiet"], extensions=["usbguard"])
    live = before | {"metadata": before["metadata"] | {"annotations": {LAST_APPLIED: json.dumps(before)}}}
    one = scratch(live)
    one.apply(machine_config("99-a", extensions=["usbguard"]), EPOCH)
    found = one.cache.get(ObjectRef(kinds.GROUP, "MachineConfig", "", "99-a"))
    assert found is not None and "kernelArguments" not in found["spec"] and found["spec"]["extensions"] == ["usbguard"]


def test_what_a_controller_added_stays_when_a_manifest_is_applied() -> None:
    one = scratch(worker())
    given = {"apiVersion": f"{kinds.GROUP}/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}}
    one.apply(given | {"spec": {"maxUnavailable": 2}}, EPOCH)
    found = one.cache.get(ObjectRef(kinds.GROUP, "MachineConfigPool", "", "worker"))
    assert dig(found, "spec", "configuration", "name") == B and dig(found, "spec", "maxUnavailable") == 2


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kernelArguments": "nosmt"}, "spec.kernelArguments: Invalid value"),
        ({"fips": "yes"}, "spec.fips: Invalid value"),
    ],
)
def test_what_the_api_refuses_is_not_played(spec: Obj, said: str) -> None:
    one = scratch()
    one.apply(machine_config("99-a", **spec), EPOCH)
    ref = ObjectRef(kinds.GROUP, "MachineConfig", "", "99-a")
    assert one.cache.get(ref) is None and one.refused[ref].startswith(said)


def test_a_name_that_no_object_may_have_is_refused() -> None:
    one = scratch()
    one.apply(machine_config("99_nosmt"), EPOCH)
    (text,) = one.refused.values()
    assert text.startswith('metadata.name: Invalid value: "99_nosmt": a lowercase RFC 1123')


def test_an_object_with_finalizers_goes_when_they_do_and_takes_along_what_it_owns() -> None:
    owner = typed(kinds.KUBELET_CONFIG, "k", {}, finalizers=["f"])
    owned = rendered("99-k") | {
        "metadata": {"name": "99-k", "ownerReferences": [{"uid": "u-k", "kind": "KubeletConfig"}]}
    }
    one = scratch(owner, owned)
    ref = ObjectRef(kinds.GROUP, "KubeletConfig", "", "k")
    assert one.delete(ref, EPOCH) and dig(one.cache.get(ref), "metadata", "deletionTimestamp")
    one.handle([Patch(kinds.KUBELET_CONFIG, "", "k", {"metadata": {"finalizers": None}}, "done")], EPOCH)
    assert one.cache.get(ref) is None and one.cache.get(ObjectRef(kinds.GROUP, "MachineConfig", "", "99-k")) is None


def test_the_look_itself_is_never_written_to() -> None:
    given = [worker(), rendered(A), FILE, node("n0")]
    before = json.dumps(given)
    played(*given)
    assert json.dumps(given) == before


# -- why --------------------------------------------------------------------------------------------------------------


def causes(old: Obj, new: Obj, **sides: Any) -> list[str]:
    given = Sides((), (), **sides)
    return [
        f"{cause}: {', '.join(cause.actions)} ({cause.why})" for cause in causes_of(old, new, work(old, new), given)
    ]


def work(old: Obj, new: Obj) -> Work:
    return work_of(old, new, POLICIES)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"kernelArguments": ["b", "a"]}, "kernelArguments + b, + a: reboot (always)"),
        (
            {"kernelArguments": ["a", "b"]},
            {"kernelArguments": ["b", "a"]},
            "kernelArguments in another order: reboot (always)",
        ),
        ({"extensions": ["x"]}, {}, "extensions - x: reboot (always)"),
        (
            {"osImageURL": "quay.io/a/os@sha256:" + "1" * 64},
            {"osImageURL": "quay.io/a/os@sha256:" + "2" * 64},
            "osImageURL os@sha256:111111111111 → os@sha256:222222222222: reboot (always)",
        ),
    ],
)
def test_parts_of_the_system_are_named_by_their_field_and_difference(before: Obj, after: Obj, said: str) -> None:
    assert causes(rendered(A, **before), rendered(B, **after)) == [said]


def test_a_file_that_is_only_written_differently_still_costs_what_the_agent_makes_of_it() -> None:
    """Upstream compares entries, not contents."""
    plain, encoded = (
        files(("/etc/a", "x")),
        files({"path": "/etc/a", "mode": 420, "contents": {"source": "data:;base64,eA=="}}),
    )
    assert causes(rendered(A, plain), rendered(B, encoded)) == [
        "file /etc/a written differently, to the same effect: reboot (no policy)"
    ]


def test_the_worst_cause_comes_first_and_each_names_its_policy() -> None:
    both = files(("/etc/containers/policy.json", "x"), ("/etc/nmstate/openshift/a", "x"), ("/etc/motd", "x"))
    assert causes(rendered(A), rendered(B, both)) == [
        "file /etc/motd added: reboot (no policy)",
        "file /etc/containers/policy.json added: reload crio.service (policy for /etc/containers/policy.json)",
        "file /etc/nmstate/openshift/a added: none (policy for /etc/nmstate/openshift)",
    ]


def test_consequences_and_actions_are_one_decision() -> None:
    found = work(rendered(A), rendered(B, files(("/etc/containers/policy.json", "x")), kernelArguments=["a"]))
    assert found.actions == (Action("Reboot"),) and found.drain
    assert found.parts == (
        Consequence("kernelArguments", "", (Action("Reboot"),)),
        Consequence(
            "file", "/etc/containers/policy.json", (Action("Reload", "crio.service"),), "/etc/containers/policy.json"
        ),
    )


def test_a_changed_fips_is_no_work_at_all() -> None:
    with pytest.raises(Irreconcilable) as refused:
        work(rendered(A), rendered(B, fips=True))
    assert fix_for(str(refused.value)) == "leave spec.fips as it was installed; only new machines can differ"


@pytest.mark.parametrize(
    ("actions", "drains", "word"),
    [
        (["none"], False, "none"),
        (["reload crio"], False, "reload"),
        (["reload crio"], True, "drain"),
        (["daemon-reload", "restart kubelet.service"], False, "restart"),
        (["reboot"], False, "reboot"),
    ],
)
def test_one_word_says_the_worst(actions: list[str], drains: bool, word: str) -> None:
    assert severity(actions, drains=drains) == word


# -- how long ---------------------------------------------------------------------------------------------------------


def event(node_name: str, seconds: float, reason: str, message: str = "") -> Obj:
    when = format_time(EPOCH + timedelta(seconds=seconds))
    about_node = {"kind": "Node", "name": node_name}
    return {"involvedObject": about_node, "reason": reason, "message": message, "lastTimestamp": when}


def update(name: str, at: float, drain: float, reboot: float) -> list[Obj]:
    return [
        event(name, at, "Drain", "Draining node to update config."),
        event(name, at + drain, "Reboot", "Node will reboot into config rendered-worker-b"),
        event(name, at + drain + reboot, "NodeDone", f"Setting node {name}, currentConfig rendered-worker-b to Done"),
    ]


def test_lengths_are_the_median_of_what_the_pools_own_nodes_took() -> None:
    events = [
        *update("n0", 0, 30, 100),
        *update("n1", 500, 50, 120),
        *update("n2", 900, 40, 500),
        *update("x", 0, 1, 1),
    ]
    pace = sampled(events, []).pace(["n0", "n1", "n2"])
    assert (pace.drain, pace.reboot, pace.service) == (Length(40, 3), Length(120, 3), ASSUMED.service)


def test_nodes_of_other_pools_are_better_than_an_assumption() -> None:
    samples = sampled(update("master-0", 0, 30, 100), [])
    assert samples.pace(["n0"]).reboot == Length(100, 1)
    assert sampled([], []).pace(["n0"]) == ASSUMED


def test_a_staged_system_is_told_apart_from_the_drain() -> None:
    events = update("n0", 0, 200, 100)
    events += [event("n0", 40, "OSUpdateStarted", "Upgrading OS"), event("n0", 190, "OSUpdateStaged", "staged")]
    pace = sampled(events, []).pace(["n0"])
    assert (pace.drain, pace.system) == (Length(40, 1), Length(150, 1))


def test_steps_that_took_longer_than_a_night_are_not_believed() -> None:
    assert sampled(update("n0", 0, 30, 100_000), []).pace(["n0"]).reboot == ASSUMED.reboot


def test_an_update_under_way_tells_its_drain_by_its_conditions() -> None:
    at = [format_time(EPOCH + timedelta(seconds=s)) for s in (0, 75)]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": when}
        for kind, when in zip(("Cordoned", "Drained"), at, strict=True)
    ]
    record = {"metadata": {"name": "n0"}, "status": {"conditions": conditions}}
    assert sampled([], [record]).pace(["n0"]).drain == Length(75, 1)


def test_a_measured_drain_ends_with_the_reboot_so_writing_is_in_it() -> None:
    reboots = Work(Changes(files=True), (Action("Reboot"),), True)
    assert ASSUMED.used(reboots, drained=True) == ["drain", "write", "reboot"]
    assert Pace(drain=Length(30, 2)).used(reboots, drained=True) == ["drain", "reboot"]


def test_a_drain_that_a_policy_asks_for_is_no_service() -> None:
    drains = Work(Changes(files=True), (Action("Drain"), Action("Reload", "crio.service")), True)
    assert ASSUMED.used(drains, drained=True) == ["drain", "write", "service"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(20, "about 20 s"), (940, "about 16 min"), (9000, "about 2 h 30 min"), (1_548_000, "about 17 d 22 h")],
)
def test_lengths_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert about(seconds) == text

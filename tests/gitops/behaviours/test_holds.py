"""Holds: pools begin no updates while a sync changes what their machines run (DECISIONS 28-30)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from tests.gitops.behaviours.sim import APPS, NOWHERE, Simulation, config, deployment, job
from tests.scenes.pools import _definition

from syncline.base.clock import format_time, parse_time
from syncline.kube.objects import Obj, annotations_of, dig, name_of

GROUP = "machineconfiguration.openshift.io"
POOLS = f"/apis/{GROUP}/v1/machineconfigpools"
HOLDS = "/apis/syncline.dev/v1alpha1/holds"
EVENTS = "/api/v1/namespaces/argocd/events"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pool(name: str = "worker", **spec: Any) -> Obj:
    selector = {"matchLabels": {f"{GROUP}/role": name}}
    body = {"machineConfigSelector": selector} | spec
    return {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfigPool", "metadata": {"name": name}, "spec": body}


def machine_config(name: str, role: str = "worker", wave: int = 0, content: str = "a") -> Obj:
    metadata = {
        "name": name,
        "labels": {f"{GROUP}/role": role},
        "annotations": {"argocd.argoproj.io/sync-wave": str(wave)},
    }
    spec = {"kernelArguments": [content]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfig", "metadata": metadata, "spec": spec}


def staged(*objects: Obj, pools: tuple[Obj, ...] = ()) -> Simulation:
    sim = Simulation()
    for plural, kind in (("machineconfigpools", "MachineConfigPool"), ("machineconfigs", "MachineConfig")):
        sim.world.send("POST", CRDS, _definition(plural, kind))
    sim.driver.advance(5)
    for one in pools or (pool(), pool("master")):
        sim.world.send("POST", POOLS, one)
    sim.source.commit(*objects)
    sim.refresh()
    return sim


def paused(sim: Simulation, name: str = "worker") -> bool:
    return dig(sim.get(f"{POOLS}/{name}"), "spec", "paused") is True


def hold(sim: Simulation, name: str = "mine", pools: tuple[str, ...] = ("worker",), minutes: int = 60) -> None:
    until = format_time(sim.world.clock.now() + timedelta(minutes=minutes))
    spec = {"pools": list(pools), "owner": "ann", "reason": "a look at the disks", "expiresAt": until}
    body = {"apiVersion": "syncline.dev/v1alpha1", "kind": "Hold", "metadata": {"name": name}, "spec": spec}
    sim.world.send("POST", HOLDS, body)
    sim.driver.settle()


def slow(name: str = "wait", seconds: int = 30, **annotations: str) -> Obj:
    return job(name, seconds=seconds, hook="PostSync", **annotations)


def test_a_sync_that_changes_machine_configs_holds_their_pools_until_its_end() -> None:
    sim = staged(machine_config("99-motd"), slow())
    sim.begin()
    sim.driver.advance(10)
    (held,) = sim.world.send("GET", HOLDS)["items"]
    assert held["spec"]["pools"] == ["worker"]
    assert held["spec"]["owner"] == "Application argocd/app"
    assert (paused(sim), paused(sim, "master")) == (True, False)
    assert sim.finish()["phase"] == "Succeeded"
    sim.driver.advance(5)
    assert (sim.names(HOLDS), paused(sim)) == ([], False)
    assert annotations_of(sim.get(f"{POOLS}/worker") or {}) == {}


def test_the_hold_is_there_before_the_machine_config() -> None:
    sim = staged(machine_config("99-motd"), slow())
    sim.begin()
    sim.finish()
    done = [e.what for e in sim.world.journal]
    wanted = ("create syncline.dev/Hold", f"patch {GROUP}/MachineConfigPool", f"apply {GROUP}/MachineConfig/")
    places = [next(i for i, what in enumerate(done) if what.startswith(start)) for start in wanted]
    assert places == sorted(places), "held, paused, and only then applied"


def test_a_sync_that_changes_no_machine_config_holds_nothing() -> None:
    sim = staged(machine_config("99-motd"), slow())
    assert sim.sync()["phase"] == "Succeeded"
    sim.source.commit(machine_config("99-motd"), config("a"), slow())
    sim.begin()
    sim.driver.advance(10)
    assert (sim.names(HOLDS), paused(sim)) == ([], False)


def test_the_hold_goes_when_the_sync_fails() -> None:
    sim = staged(machine_config("99-motd"), job("bad", code=1, hook="PostSync"))
    sim.begin()
    sim.driver.advance(1)
    assert paused(sim)
    assert sim.finish()["phase"] == "Failed"
    sim.driver.advance(5)
    assert (sim.names(HOLDS), paused(sim)) == ([], False)


def test_the_hold_goes_when_the_sync_is_terminated() -> None:
    sim = staged(machine_config("99-motd"), slow(seconds=3600))
    sim.begin()
    sim.driver.advance(10)
    sim.patch(f"{APPS}/app", {"status": {"operationState": {"phase": "Terminating"}}})
    assert sim.finish()["phase"] == "Failed"
    sim.driver.advance(5)
    assert (sim.names(HOLDS), paused(sim)) == ([], False)


def test_the_hold_goes_with_an_application_that_is_deleted_in_the_middle() -> None:
    sim = staged(machine_config("99-motd"), slow(seconds=3600))
    sim.begin()
    sim.driver.advance(10)
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(5)
    assert (sim.get(f"{APPS}/app"), sim.names(HOLDS), paused(sim)) == (None, [], False)


def test_the_hold_is_renewed_while_the_operation_lives_and_kept_between_attempts() -> None:
    sim = staged(machine_config("99-motd"), slow(seconds=4 * 3600))
    sim.begin()
    sim.driver.advance(3 * 3600)
    (held,) = sim.world.send("GET", HOLDS)["items"]
    left = parse_time(held["spec"]["expiresAt"]) - sim.world.clock.now()
    assert timedelta(minutes=39) < left <= timedelta(minutes=60)
    assert paused(sim), "a Job at work would be aborted by a reboot"


def waits_for_pools(seconds: int) -> Obj:
    hook = slow(seconds=seconds)
    hook["spec"]["template"]["spec"]["containers"][0]["args"] = ["oc wait --for=condition=updated mcp worker"]
    return hook


def test_a_hook_that_waits_for_pools_gets_the_hold_back() -> None:
    sim = staged(machine_config("99-motd"), waits_for_pools(3600))
    sim.begin()
    sim.driver.advance(50)
    assert paused(sim), "it may just pause or resume a pool"
    sim.driver.advance(30)
    assert sim.state()["message"] == "waiting for completion of hook batch/Job/wait"
    assert (sim.names(HOLDS), paused(sim)) == ([], False)


def test_an_application_that_names_its_pools_keeps_them_however_long_a_gate_waits() -> None:
    sim = staged(machine_config("99-motd"), waits_for_pools(3600))
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {"syncline.dev/hold-pools": "worker"}}})
    sim.begin()
    sim.driver.advance(1800)
    assert paused(sim)


def test_a_gate_on_health_that_waits_for_long_gets_the_hold_back_as_it_may_wait_for_what_the_machines_get() -> None:
    needs = deployment("needs-huge-pages", pod=NOWHERE, sync_wave="1")
    sim = staged(machine_config("99-motd"), needs, config("last", sync_wave="2"))
    sim.begin()
    sim.driver.advance(4 * 60)
    assert paused(sim)
    sim.driver.advance(2 * 60)
    assert (sim.names(HOLDS), paused(sim), sim.state()["phase"]) == ([], False, "Running")


def test_a_hold_that_nobody_renews_ends_by_itself() -> None:
    sim = staged()
    hold(sim, minutes=30)
    assert paused(sim)
    sim.driver.advance(29 * 60)
    assert paused(sim)
    sim.driver.advance(120)
    assert (sim.names(HOLDS), paused(sim)) == ([], False)


def test_two_holds_on_one_pool_end_with_the_last() -> None:
    sim = staged()
    hold(sim, "a")
    hold(sim, "b", ("worker", "master"))
    sim.world.send("DELETE", f"{HOLDS}/a")
    sim.driver.settle()
    assert (paused(sim), paused(sim, "master")) == (True, True)
    sim.world.send("DELETE", f"{HOLDS}/b")
    sim.driver.settle()
    assert (paused(sim), paused(sim, "master")) == (False, False)


def test_what_a_person_paused_stays_paused() -> None:
    sim = staged()
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    hold(sim)
    sim.world.send("DELETE", f"{HOLDS}/mine")
    sim.driver.settle()
    assert paused(sim)


def test_what_a_person_resumed_and_paused_again_during_a_hold_stays_theirs() -> None:
    sim = staged()
    hold(sim)
    sim.driver.advance(5)
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": False}})
    sim.driver.advance(5)
    assert not paused(sim), "the bridge acts once for a Hold"
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    sim.world.send("DELETE", f"{HOLDS}/mine")
    sim.driver.settle()
    assert paused(sim)


def test_a_pool_of_our_own_room_is_left_to_it() -> None:
    sim = staged()
    now = sim.world.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "syncline-machine-config"}}
    spec = {"holderIdentity": "room", "renewTime": now, "leaseDurationSeconds": 600}
    sim.world.send("POST", "/apis/coordination.k8s.io/v1/namespaces/argocd/leases", lease | {"spec": spec})
    sim.driver.settle()
    hold(sim)
    assert not paused(sim)


def test_a_gate_does_not_wait_for_a_pool_that_is_held() -> None:
    mine = pool("infra") | {"metadata": {"name": "infra", "annotations": {"argocd.argoproj.io/sync-wave": "1"}}}
    sim = staged(machine_config("99-infra", role="infra"), mine, config("last", sync_wave="2"), pools=(pool("infra"),))
    sim.begin()
    state = sim.finish(limit_s=600)
    assert state["phase"] == "Succeeded", state["message"]


def test_an_application_may_name_the_pools_that_it_wants_held_or_want_none() -> None:
    sim = staged(config("a"), slow())
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {"syncline.dev/hold-pools": "master"}}})
    sim.begin()
    sim.driver.advance(10)
    assert (paused(sim), paused(sim, "master")) == (False, True)
    sim.finish()
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {"syncline.dev/hold-pools": "none"}}})
    sim.source.commit(machine_config("99-motd"), slow())
    sim.begin()
    sim.driver.advance(10)
    assert sim.names(HOLDS) == []


def test_a_pruned_machine_config_holds_its_pool_too() -> None:
    sim = staged(machine_config("99-motd"), machine_config("99-gone", role="master"), slow())
    sim.sync()
    sim.source.commit(machine_config("99-motd"), slow())
    sim.begin({"prune": True})
    sim.driver.advance(10)
    assert (paused(sim), paused(sim, "master")) == (False, True)


def test_a_dry_run_holds_nothing() -> None:
    sim = staged(machine_config("99-motd"))
    assert sim.sync({"dryRun": True})["phase"] == "Succeeded"
    assert not [e for e in sim.world.journal if e.what.startswith("create") and "Hold" in e.what]


def test_a_pool_that_a_hook_paused_is_resumed_when_the_operation_fails() -> None:
    pause = job("pause", seconds=20, code=1, hook="PreSync")
    pause["spec"]["template"]["spec"]["containers"][0]["args"] = ["oc patch mcp worker", '{"spec":{"paused":true}}']
    sim = staged(pause)
    sim.begin()
    sim.driver.advance(10)
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    assert sim.finish()["phase"] == "Failed"
    sim.driver.advance(5)
    assert not paused(sim)
    events = [e["message"] for e in sim.world.send("GET", EVENTS)["items"] if e["reason"] == "PoolResumed"]
    assert len(events) == 1 and "MachineConfigPool worker is resumed" in events[0]
    assert "syncline.dev/pools-left-paused" not in annotations_of(sim.app())


def test_a_pool_that_somebody_pauses_while_hooks_of_another_purpose_run_is_left_alone() -> None:
    sim = staged(job("migrate", seconds=20, code=1, hook="PreSync"))
    sim.begin()
    sim.driver.advance(10)
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    assert sim.finish()["phase"] == "Failed"
    sim.driver.advance(60)
    assert paused(sim)


def test_a_pool_that_was_paused_before_or_after_the_operation_is_left_alone() -> None:
    sim = staged(job("hook", seconds=5, hook="PreSync"))
    sim.patch(f"{POOLS}/master", {"spec": {"paused": True}})
    sim.driver.advance(5)
    sim.sync()
    sim.driver.advance(5)
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    sim.driver.advance(60)
    assert (paused(sim), paused(sim, "master")) == (True, True)


def test_the_notes_of_the_bridge_are_on_the_pool() -> None:
    sim = staged()
    hold(sim)
    noted = annotations_of(sim.get(f"{POOLS}/worker") or {})["syncline.dev/held"]
    assert json.loads(noted) == ["mine"]
    events = [e for e in sim.world.send("GET", "/api/v1/namespaces/default/events")["items"] if e["reason"] == "Paused"]
    assert [name_of(e["involvedObject"] | {"metadata": {"name": e["involvedObject"]["name"]}}) for e in events] == [
        "worker"
    ]

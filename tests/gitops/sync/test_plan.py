"""Plans are data: pure, complete ahead of time, and they say what is waited for."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from syncline.apply.actions import DeleteHook, PruneObject
from syncline.apply.outcome import Outcome, WaitKind
from syncline.gitops.sync.cause import causes
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import GATE_DEADLINE, OperationPhase, Pair, SyncObserved, SyncOptions, SyncPlan
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.plan import plan_preview, plan_sync, plan_termination, record
from syncline.gitops.sync.results import images_of, rows_from_status, rows_to_status
from syncline.kube.objects import Obj
from syncline.kube.schema.resources import builtin_resources

START = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = KindTable({info.gvk: info for info in builtin_resources()})


def config(name: str, **annotations: str) -> Obj:
    named = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "demo", "annotations": named}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "1"}}


def job(name: str, hook: str, account: str = "") -> Obj:
    obj = config(name, hook=hook)
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "job:1"}], "restartPolicy": "Never"}
    if account:
        spec["serviceAccountName"] = account
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": obj["metadata"], "spec": {"template": {"spec": spec}}}


def live(obj: Obj, **fields: Any) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": obj["metadata"]["name"], **fields}}


def observed_of(*pairs: Pair, hooks: tuple[Obj, ...] = (), **more: Any) -> SyncObserved:
    given: dict[str, Any] = {"options": SyncOptions(prune=True), "operation": "op-1", **more}
    return SyncObserved("demo", "a1b2c3d4e5", START, pairs, hooks, KINDS, **given)


def run_pass(observed: SyncObserved) -> SyncPlan:
    """One pass in which everything is accepted."""
    while not (plan := plan_sync(observed, START)).ended:
        answers = tuple(tuple(Outcome(True, f"done {action.describe()}") for action in step) for step in plan.steps)
        observed = record(observed, plan, answers)
    return plan


def test_everything_is_dry_run_first_and_then_the_lowest_wave_runs() -> None:
    observed = observed_of(Pair(config("late", sync_wave="1"), None), Pair(config("early"), None))
    first = plan_sync(observed, START)
    assert [action.describe() for step in first.steps for action in step] == [
        "dry run: apply /ConfigMap/demo/early",
        "dry run: apply /ConfigMap/demo/late",
    ]
    observed = record(observed, first, tuple(tuple(Outcome(True) for _ in step) for step in first.steps))
    second = plan_sync(observed, START)
    assert [[action.describe() for action in step] for step in second.steps] == [["apply /ConfigMap/demo/early"]]


def test_equal_input_gives_an_equal_plan_and_is_left_as_it_was() -> None:
    pairs = [
        Pair(config("a"), live(config("a"))),
        Pair(None, live(config("old"))),
        Pair(config("b", sync_wave="2"), None),
    ]
    observed = observed_of(*pairs, hooks=(job("h", "PreSync"),))
    before = copy.deepcopy(observed.pairs), copy.deepcopy(observed.hooks)
    assert run_pass(observed) == run_pass(observed)
    assert (observed.pairs, observed.hooks) == before


def test_the_order_in_which_objects_are_given_does_not_matter() -> None:
    pairs = [Pair(config(name, sync_wave=str(wave)), None) for wave, name in enumerate("dcbaefg")]
    pairs += [Pair(None, live(config(f"x{number}", sync_wave=str(number)))) for number in range(4)]
    expected = [step.describe() for step in _actions(observed_of(*pairs))]
    for seed in range(20):
        random.Random(seed).shuffle(pairs)
        assert [step.describe() for step in _actions(observed_of(*pairs))] == expected, f"seed {seed}"


def _actions(observed: SyncObserved) -> list[Any]:
    return [action for wave in plan_preview(observed, START) for action in wave.actions]


def test_the_whole_operation_can_be_seen_ahead_of_time() -> None:
    hook = job("h", "PreSync")
    observed = observed_of(
        Pair(config("a"), None),
        Pair(config("b", sync_wave="2"), None),
        Pair(None, live(config("old"))),
        Pair(None, live(config("kept", sync_options="Prune=false"))),
        Pair(None, live(hook)),
        hooks=(hook, job("after", "PostSync")),
    )
    preview = plan_preview(observed, START)
    assert [(wave.phase, wave.wave) for wave in preview] == [
        (SyncPhase.PRE_SYNC, 0),
        (SyncPhase.SYNC, 0),
        (SyncPhase.SYNC, 2),
        (SyncPhase.POST_SYNC, 0),
    ]
    assert [action.describe() for action in preview[1].actions] == [
        "prune /ConfigMap/demo/old",
        "apply /ConfigMap/demo/a",
    ]
    assert isinstance(preview[0].actions[0], DeleteHook)
    assert preview[1].notes == ("/ConfigMap/demo/kept: ignored (no prune)",)


def test_the_preview_warns_of_a_hook_whose_service_account_comes_later() -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "demo"}}
    observed = observed_of(Pair(account, None), hooks=(job("h", "PreSync", "sa"),))
    (note,) = plan_preview(observed, START)[0].notes
    assert "/ServiceAccount/demo/sa" in note and "phase" not in note
    assert "for ever" in note


def test_the_preview_names_a_change_that_will_be_refused() -> None:
    target = job("j", "x")
    del target["metadata"]["annotations"]["argocd.argoproj.io/hook"]
    changed = copy.deepcopy(target)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "job:2"
    (note,) = plan_preview(observed_of(Pair(changed, live(target))), START)[0].notes
    assert "field is immutable" in note


def test_a_wait_names_its_objects_its_beginning_and_when_it_is_overdue() -> None:
    hook = job("h", "PreSync", "sa")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "demo"}}
    observed = observed_of(Pair(account, None), hooks=(hook,))
    plan = run_pass(observed)
    assert plan.message == "waiting for completion of hook batch/Job/h"
    assert plan.wait is not None and plan.wait.kind is WaitKind.HOOK
    assert (plan.wait.since, plan.wait.until) == (START, START + GATE_DEADLINE)
    (cause,) = causes(observed, plan)
    assert cause.subject == "batch/Job/demo/h"
    assert cause.because[0].subject == "/ServiceAccount/demo/sa"


def test_a_deletion_that_hangs_names_the_finalizers() -> None:
    old = live(config("old"), deletionTimestamp="2026-01-01T00:01:00Z", finalizers=["x/y"])
    observed = observed_of(Pair(config("a", sync_wave="5"), None), Pair(None, old))
    plan = run_pass(observed)
    again = plan_sync(replace(observed, results=plan.results), START)
    assert again.message == "waiting for deletion of /ConfigMap/old"
    (cause,) = causes(observed, again)
    assert (cause.state, cause.message) == ("Terminating", "held by finalizers: x/y")
    assert "finalizers" in cause.next_action


def test_results_survive_their_way_through_the_status() -> None:
    plan = run_pass(observed_of(Pair(config("a"), None), Pair(None, live(config("old"))), hooks=(job("h", "PreSync"),)))
    assert plan.results
    assert rows_from_status(rows_to_status(plan.results)) == plan.results
    assert rows_from_status([{"kind": "x"}, "junk", None]) == ()


def test_images_are_those_of_the_first_place_that_has_containers() -> None:
    containers = [{"name": "c", "image": "a:1"}, {"name": "d"}, 1]
    template = {"spec": {"containers": [{"image": "b:1"}]}}
    assert images_of({"spec": {"containers": containers, "template": template}}) == ("a:1",)
    assert images_of({"spec": {"containers": "none", "template": template}}) == ("b:1",)


def test_a_hook_of_the_name_of_what_is_pruned_waits_for_its_deletion_too() -> None:
    old = live(config("x"), finalizers=["x/y"], deletionTimestamp="2026-01-01T00:00:00Z")
    observed = observed_of(Pair(None, old), hooks=(config("x", hook="Sync"),))
    plan = run_pass(observed_of(Pair(None, old)))
    again = plan_sync(replace(observed, results=plan.results), START)
    assert again.message == "waiting for deletion of hook /ConfigMap/x and 1 more resources"


def test_generated_names_are_the_same_in_every_pass_of_an_attempt_and_new_in_the_next() -> None:
    target = job("", "x")
    target["metadata"] = {"generateName": "run-", "namespace": "demo"}
    options = SyncOptions(replace=True)
    names = [
        _actions(observed_of(Pair(target, None), options=options, operation=op))[0].ref.name for op in ("1", "1", "2")
    ]
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("run-") and len(name) == len("run-") + 5 for name in names)


def test_an_object_is_pruned_by_the_uid_that_was_seen() -> None:
    (action,) = _actions(observed_of(Pair(None, live(config("old")))))
    assert isinstance(action, PruneObject)
    assert action.uid == "old"


def test_16_a_termination_leaves_resources_alone() -> None:
    observed = observed_of(Pair(config("a"), live(config("a"))), phase=OperationPhase.TERMINATING)
    plan = plan_termination(observed, START)
    assert (plan.ended, plan.phase, plan.message) == (True, OperationPhase.FAILED, "Operation terminated")
    assert plan_sync(observed, START) == plan


def test_an_object_that_is_read_but_not_shown_is_judged_by_what_was_read() -> None:
    target = job("", "x")
    del target["metadata"]["annotations"]
    target["metadata"] = {"generateName": "run-", "namespace": "demo"}
    pairs = (Pair(target, None), Pair(config("late", sync_wave="1"), None))
    observed = observed_of(*pairs, options=SyncOptions(replace=True))
    observed = replace(observed, results=run_pass(observed).results)
    plan = plan_sync(observed, START)
    ((read,),) = plan.steps
    finished = {**target, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    ended = plan_sync(record(observed, plan, ((Outcome(True, obj=finished),),)), START)
    assert read.describe().startswith("read batch/Job/demo/run-")
    assert (ended.again, ended.results[0].hook_phase) == (True, OperationPhase.SUCCEEDED)


def test_an_object_that_got_its_name_in_this_attempt_is_found_again_not_pruned() -> None:
    target = job("", "x")
    target["metadata"] = {"generateName": "run-", "namespace": "demo"}
    options = SyncOptions(replace=True, prune=True)
    (made,) = _actions(observed_of(Pair(target, None), options=options))
    again = observed_of(Pair(target, None), Pair(None, live(made.target)), options=options)
    assert not any(isinstance(action, PruneObject) for action in _actions(again))
    plan = run_pass(again)
    assert [row.status for row in plan.results] == ["Synced"]


def test_no_value_of_a_secret_is_in_any_text() -> None:
    secret = {**config("s"), "kind": "Secret", "data": {"v": "dG9wc2VjcmV0"}, "stringData": {"w": "topsecret"}}
    observed = observed_of(Pair(secret, live(secret)), hooks=({**secret, "metadata": job("h", "PreSync")["metadata"]},))
    first = plan_sync(observed, START)
    texts = [repr(observed), repr(first), repr(plan_preview(observed, START)), repr(run_pass(observed))]
    texts += [action.describe() + action.reason for step in first.steps for action in step]
    assert not [text for text in texts if "topsecret" in text or "dG9wc2VjcmV0" in text]

"""The controller may die after any request of an operation: it always ends the same, and every hook runs once.

The same scripted cluster as for the recorded runs, with the stamps switched on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.gitops.recordings import cases
from tests.gitops.sync.drive import Driver

from syncline.apply.actions import AfterWave, DryRun, ReadObject, SyncAction
from syncline.apply.outcome import Outcome
from syncline.gitops.sync.model import OperationPhase, ResultCode, ResultRow, SyncObserved

FINISHED = [{"after": 1, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}]
READY = [{"after": 1, "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}]
FAILED = [{"after": 1, "status": {"conditions": [{"type": "Failed", "status": "True", "message": "no"}]}}]
MAX_STEPS = 40
FAMILIES = ("phases", "hook-kinds", "hook-names", "hook-policies", "helm", "hook-failures", "multi-phase", "finalizers")
"""Recorded runs that are about hooks."""


class Died(Exception):
    """The controller is gone; what it had in memory is lost."""


class Crashing(Driver):
    """Dies once, after its ``crash_after``-th request was answered, and starts again from the objects."""

    def __init__(self, given: dict[str, Any], crash_after: int) -> None:
        super().__init__(given)
        self.left = crash_after
        self.requests = 0
        self.results: tuple[ResultRow, ...] = ()

    def _observe(self, *given: Any) -> SyncObserved:
        return replace(super()._observe(*given), operation="op-1")

    def _handle(self, action: SyncAction, calls: list[dict[str, Any]]) -> Outcome:
        outcome = super()._handle(action, calls)
        if not isinstance(action, (DryRun, ReadObject, AfterWave)):
            self.requests += 1
            if self.requests == self.left:
                raise Died
        return outcome

    def finish(self) -> tuple[OperationPhase, str, tuple[ResultRow, ...]]:
        state: tuple[OperationPhase, str, tuple[ResultRow, ...]] = (OperationPhase.RUNNING, "", ())
        for step in range(MAX_STEPS):
            self.world.begin(step)
            try:
                state = self._pass(self.operations[0], *state, step)
            except Died:
                continue
            if state[0].completed:
                return state
        return state


def job(name: str, hook: str, policy: str = "") -> dict[str, Any]:
    annotations = {"argocd.argoproj.io/hook": hook}
    if policy:
        annotations["argocd.argoproj.io/hook-delete-policy"] = policy
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "job:1"}]}}},
    }


def config(name: str, wave: str = "0") -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"argocd.argoproj.io/sync-wave": wave}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "1"}}


def leftover(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {**manifest["metadata"], "namespace": "demo", "finalizers": ["argocd.argoproj.io/hook-finalizer"]}
    return {**manifest, "metadata": metadata}


def scenario(*, fails: bool) -> dict[str, Any]:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "app:1"}]}}},
    }
    hooks = [
        job("before", "PreSync"),
        job("before-too", "PreSync", "HookSucceeded"),
        job("during", "Sync", "BeforeHookCreation,HookSucceeded,HookFailed"),
        job("after", "PostSync", "HookSucceeded"),
        job("rescue", "SyncFail", "HookFailed"),
    ]
    old = {**config("old"), "metadata": {"name": "old", "namespace": "demo"}}
    return {
        "namespace": "demo",
        "targets": [*hooks, config("a", "-1"), deployment, config("b", "2")],
        "live": [leftover(hooks[0]), leftover(hooks[2]), old],
        "options": {"prune": True, "createNamespace": True},
        "world": {
            "onApply": [
                {"match": "batch/Job/demo/after", "when": "created", "changes": FAILED if fails else FINISHED},
                {"match": "batch/Job/demo/*", "when": "created", "changes": FINISHED},
                {"match": "apps/Deployment/demo/*", "changes": READY},
            ]
        },
    }


def _facts(driver: Crashing) -> tuple[Any, ...]:
    phase, message, rows = driver.finish()
    # That something is gone cannot be read from what is there: the row of a prune may be lost.
    kept = [row for row in rows if row.status is not ResultCode.PRUNED]
    states = sorted((str(row.ref), str(row.sync_phase), str(row.status), str(row.hook_phase)) for row in kept)
    hooks = {key: count for key, count in driver.world.created.items() if key.startswith("batch/Job/")}
    return phase, message, states, sorted(driver.world.things), hooks


@pytest.mark.parametrize("fails", [False, True], ids=["succeeding", "failing"])
def test_5_a_controller_that_dies_after_any_request_ends_the_same_and_runs_every_hook_once(fails: bool) -> None:
    calm = Crashing(scenario(fails=fails), crash_after=0)
    expected = _facts(calm)
    assert expected[0] is (OperationPhase.FAILED if fails else OperationPhase.SUCCEEDED)
    assert set(expected[4].values()) == {1}, expected[4]
    assert calm.requests > 10
    for request in range(1, calm.requests + 1):
        assert _facts(Crashing(scenario(fails=fails), request)) == expected, f"died after request {request}"


def test_the_result_of_a_hook_is_kept_before_its_object_goes() -> None:
    driver = Crashing(scenario(fails=False), crash_after=0)
    released: list[str] = []

    class Watching(Crashing):
        def _pass(self, operation: Any, phase: Any, message: Any, rows: Any, step: int) -> Any:
            self.kept = {str(row.ref): row.hook_phase for row in rows}
            return super()._pass(operation, phase, message, rows, step)

        def _handle(self, action: SyncAction, calls: list[dict[str, Any]]) -> Outcome:
            if "the hook has ended" in action.reason:
                released.append(str(action.ref))  # type: ignore[union-attr]
                assert self.kept[released[-1]].completed
            return super()._handle(action, calls)

    driver = Watching(scenario(fails=False), crash_after=0)
    driver.finish()
    assert len(released) == 4


SCRIPTED_IN_STEPS = ("events", "terminateAtStep", "errors", "crashAtSteps", "apis")
"""A crash takes a step, so what a script does at a certain step would come at another moment."""


def _is_free_of_steps(case: dict[str, Any]) -> bool:
    given = case["input"]
    options = given.get("options") or {}
    script = given.get("world") or {}
    timed = any(name in script for name in SCRIPTED_IN_STEPS) or "waveHookError" in options
    return not timed and not given.get("then") and "retries" not in options and "deny" not in options


@pytest.mark.parametrize(
    "case", [c for c in cases("sync") if c["family"] in FAMILIES and _is_free_of_steps(c)], ids=lambda c: c["id"]
)
def test_5_recorded_operations_with_hooks_survive_a_crash_after_any_request(case: dict[str, Any]) -> None:
    def end(crash_after: int) -> tuple[Any, ...]:
        driver = Crashing(case["input"], crash_after)
        phase = driver.finish()[0]
        hooks = {str(row.ref) for row in driver.results if row.hook_type}
        return driver.requests, (phase, sorted(driver.world.things), {key: driver.world.created[key] for key in hooks})

    requests, expected = end(0)
    for request in range(1, requests + 1):
        assert end(request)[1] == expected, f"{case['about']}: died after request {request} of {requests}"

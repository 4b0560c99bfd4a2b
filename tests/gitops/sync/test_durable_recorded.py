"""What makes a crash harmless changes nothing else: the recorded operations end as they do upstream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.gitops.recordings import cases
from tests.gitops.sync.drive import Driver
from tests.gitops.sync.world import CallError

from syncline.apply.actions import ApplyMode, ApplyObject, DryRun, SyncAction
from syncline.apply.outcome import Outcome, WaitKind
from syncline.gitops.sync.model import SyncObserved

LATER = "the results of hooks are kept in a step of their own, and the script counts steps"
STRANGER = "an object that is no hook and that nobody tracks is not deleted in favour of a hook"
FOR_EVER = "beside a failed task, resources that never get healthy are not waited for"
DEVIATIONS = {
    "sync-0096": STRANGER,
    "sync-0148": "an object that is gone when it is pruned counts as pruned",
    "sync-0330": LATER,
    "sync-0395": STRANGER,
    "sync-0409": "a Namespace that is a hook is not made by CreateNamespace too and then deleted",
    "sync-0410": "a Namespace that is a hook is not made by CreateNamespace too and then deleted",
    "sync-0418": "the scripted API accepts the dry run of a new object and then refuses it",
    "sync-0434": LATER,
    "sync-0458": LATER,
    "sync-0470": LATER,
    "sync-0498": FOR_EVER,
    "sync-0527": FOR_EVER,
}
"""Cases that end otherwise with the stamps on, and why; named in docs/compatibility.md by their kinds."""


class Durable(Driver):
    """The same world, with the attempt named; an object that is made anew is deleted first."""

    attempt = "0"

    def _observe(self, *given: Any) -> SyncObserved:
        observed = super()._observe(*given)
        if observed.message.startswith("Retrying"):
            self.attempt = observed.message
        elif not observed.results and not observed.message:
            self.attempt = "0"
        return replace(observed, operation=f"{observed.started_at.isoformat()}/{self.attempt}")

    def _handle(self, action: SyncAction, calls: list[dict[str, Any]]) -> Outcome:
        if isinstance(action, DryRun) and action.of.mode is ApplyMode.RECREATE:
            return Outcome(True)
        if not isinstance(action, ApplyObject) or action.mode is not ApplyMode.RECREATE:
            return super()._handle(action, calls)
        key = self._real_key(action.ref)
        try:
            found = self.world.things.get(key)
            if found is not None and found.gone_at is None:
                self.world.delete(key)
            if key in self.world.things:
                return Outcome(False, pending=WaitKind.DELETION)
            return Outcome(True, self.world.write("create", action.target, dry=False))
        except CallError as error:
            return Outcome(False, error.message)


def _ends(steps: list[dict[str, Any]]) -> list[Any]:
    completed = ("Succeeded", "Failed", "Error")
    kept = [step for step in steps if step["phase"] in completed and not step.get("lost")]
    return [(step["op"], step["attempt"], step["phase"], step["message"]) for step in kept]


@pytest.mark.parametrize("case", cases("sync"), ids=lambda c: f"{c['id']}-{c['family']}")
def test_with_stamps_an_operation_ends_as_upstream_does(case: dict[str, Any]) -> None:
    script = dict(case["input"].get("world") or {})
    script["maxSteps"] = 2 * script.get("maxSteps", 8)
    got = Durable({**case["input"], "world": script}).run()
    same = _ends(got["steps"]) == _ends(case["expect"]["steps"]) and got["live"] == case["expect"]["live"]
    assert same is (case["id"] not in DEVIATIONS), DEVIATIONS.get(case["id"], case["about"])

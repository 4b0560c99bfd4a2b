"""When a sync starts by itself, beside what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.base.clock import EPOCH
from syncline.gitops.application.operating.autosync import SelfHealBackoff, decide

SOURCE = {"repoURL": "https://h/r", "path": "."}


def app(result: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    state = {"phase": "Failed", "message": "boom", "syncResult": result}
    spec = {"source": SOURCE, "syncPolicy": {"automated": {}}}
    return {"metadata": {"name": "a"}, "spec": spec, "status": {"operationState": state}, **more}


@pytest.mark.parametrize(
    ("result", "last"), [(None, "[]"), ({"revision": "old", "source": SOURCE}, "[old]"), ({"source": SOURCE}, "[]")]
)
def test_a_failed_attempt_is_named_by_the_revision_that_it_had(result: dict[str, Any] | None, last: str) -> None:
    changed = [{"kind": "ConfigMap", "status": "OutOfSync"}]
    found = decide(app(result), "OutOfSync", ["new"], changed, EPOCH, compare_revisions=False)
    assert found.condition is not None
    assert found.condition.message == f"Failed last sync attempt to {last}: boom"


def test_an_empty_operation_is_one_in_progress() -> None:
    found = decide(app(None, operation={}), "OutOfSync", ["new"], [{"status": "OutOfSync"}], EPOCH)
    assert (found.operation, found.why) == (None, "another operation is in progress")


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (SelfHealBackoff(2, 3, 300), [0, 2, 6, 18, 54, 162, 300]),
        (SelfHealBackoff(20, 3, 10), [0, 20, 10, 10]),
        (SelfHealBackoff(2, 0, 300), [0, 2, 2, 2]),
        (SelfHealBackoff(2, 3, 0), [0, 2, 6, 18, 54]),
    ],
)
def test_the_first_wait_is_the_duration_and_only_what_grew_is_capped(
    backoff: SelfHealBackoff, waits: list[float]
) -> None:
    assert [backoff.wait_s(attempt) for attempt in range(len(waits))] == waits

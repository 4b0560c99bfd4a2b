"""What a real control plane filled in and refused, replayed request by request."""

from __future__ import annotations

import pytest

from ..replaying import differing_steps  # type: ignore[import-untyped]

RECORDINGS = (
    "defaults-batch",
    "defaults-core",
    "defaults-pod",
    "defaults-policy-network",
    "defaults-rbac-webhooks",
    "defaults-service",
    "defaults-storage-cluster",
    "defaults-workloads",
    "errors-metadata",
    "events",
    "job-immutability",
    "namespaces",
    "sub-scale",
    "sub-status",
)
ELSEWHERE = {"cluster-role-filled"}
"""Steps that a controller answers, which is not this room's work."""


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recorded_answer_is_given(name: str) -> None:
    wrong, compared = differing_steps(name)
    ours = [text for text in wrong if text.split(":", 1)[0].rpartition("/")[2] not in ELSEWHERE]
    assert compared
    assert not ours, f"{compared - len(wrong)} of {compared} steps agree\n" + "\n".join(ours)

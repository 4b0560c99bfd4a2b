"""Recorded conversations with Kubernetes' controllers and scheduler, replayed in virtual time."""

from __future__ import annotations

import pytest
from tests.cluster.replaying import differing_steps

SCENARIOS = (
    "daemonset-nodes",
    "delete-owners",
    "delete-propagation",
    "deployment-deadline",
    "deployment-pause-undo",
    "deployment-rollout",
    "endpointslices",
    "job-completion",
    "job-failure",
    "namespaces",
    "pdb-status",
    "quota-limits",
    "replicaset-adoption",
    "scheduling-affinity",
    "scheduling-refusals",
    "statefulset-order",
    "storage-binding",
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_controllers_answer_as_recorded(name: str) -> None:
    wrong, compared = differing_steps(name)
    assert compared > 0
    assert not wrong, "\n".join(wrong)

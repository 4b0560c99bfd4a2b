"""With whom the claims of a StatefulSet go (``persistentVolumeClaimRetentionPolicy``)."""

from __future__ import annotations

import pytest
from tests.cluster.world import World

from syncline.kube.objects import Obj

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def stateful(policy: Obj) -> Obj:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    spec |= {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    spec |= {"persistentVolumeClaimRetentionPolicy": policy}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}


def claims(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.items(CLAIMS)]


@pytest.mark.parametrize(
    ("deleted", "scaled", "after_scaling", "after_deleting"),
    [
        ("Retain", "Retain", ["data-db-0", "data-db-1"], ["data-db-0", "data-db-1"]),
        ("Retain", "Delete", ["data-db-0"], ["data-db-0"]),
        ("Delete", "Retain", ["data-db-0", "data-db-1"], []),
        ("Delete", "Delete", ["data-db-0"], []),
    ],
)
def test_claims_go_with_the_pod_or_the_set_or_stay(
    deleted: str, scaled: str, after_scaling: list[str], after_deleting: list[str]
) -> None:
    world = World()
    world.settle()
    world.node("a")
    world.post(SETS, stateful({"whenDeleted": deleted, "whenScaled": scaled}))
    world.run_until_ready("default")
    assert claims(world) == ["data-db-0", "data-db-1"]
    world.merge(f"{SETS}/db", {"spec": {"replicas": 1}})
    world.run_until_ready("default")
    assert claims(world) == after_scaling
    world.delete(f"{SETS}/db", "Background")
    world.run_until_ready("default")
    assert claims(world) == after_deleting

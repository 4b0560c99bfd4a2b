"""The scene ``cluster-group`` as a Pattern: two operators, of which the second must find the first one's storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.patterns.scene import CURES, PATTERNS, SCENE, Scene
from tests.recorded import absent

from syncline.kube.objects import dig

pytestmark = pytest.mark.skipif(not SCENE.exists(), reason=absent(SCENE))
RIGHT, WRONG = "ocs-storagecluster-ceph-rbd-virtualization", "standard"
JOBS = "/apis/batch/v1/namespaces/openshift-operators/jobs"


@pytest.mark.parametrize("cure", CURES)
def test_the_second_operator_finds_the_storage_of_the_first_with_each_cure_and_not_without(
    cure: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, cure)
    scene.install()
    if cure != "none":
        scene.driver.advance(120)
        message = dig(scene.parent(), "status", "operationState", "message")
        assert (
            message
            == {
                "jobs": "waiting for completion of hook batch/Job/odf-operator-sequencejob and 1 more hooks",
                "wait": "batch/Job/openshift-operators/odf-operator-sequencejob holds what comes after wave 5: "
                "storage.k8s.io/StorageClass//ocs-storagecluster-ceph-rbd is not there",
                "gate": "operators.coreos.com/Subscription/openshift-cnv/kubevirt-hyperconverged waits: "
                "gate storageclass-present: StorageClass ocs-storagecluster-ceph-rbd is not there",
            }[cure]
        )
        jobs = [one["metadata"]["name"] for one in scene.world.send("GET", JOBS)["items"]]
        assert bool(jobs) == (cure == "jobs")
    scene.driver.until(lambda: scene.chosen() != "", 900)
    assert scene.chosen() == (WRONG if cure == "none" else RIGHT)
    assert dig(scene.parent(), "status", "operationState", "phase") == "Succeeded"
    pattern = scene.get(f"{PATTERNS}/shop")
    assert pattern is not None and pattern["status"]["lastStep"] == "reconcile complete"

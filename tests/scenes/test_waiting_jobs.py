"""A MachineConfig and a Job that waits in the same sync until the pool has it, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenes.test_machines import MASTERS, WORKER, all_updated, boots

from syncline.cli.views.story import transcript
from syncline.rehearsal.scenario import PLACE, NodeShape, Scenario, Step, Until
from syncline.rehearsal.simulation import Simulation

CONFIG = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 95-worker-greeting
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  config:
    ignition: {version: 3.2.0}
    storage:
      files:
      - path: /etc/greeting
        mode: 420
        overwrite: true
        contents: {source: "data:,hello%0A"}
"""
RIGHTS = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: watcher, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watches-pools}
rules:
- apiGroups: [machineconfiguration.openshift.io]
  resources: [machineconfigpools]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: watches-pools}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: watches-pools}
subjects:
- {kind: ServiceAccount, name: watcher, namespace: default}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: until-the-workers-have-it
  namespace: default
  annotations: {%s}
spec:
  template:
    spec:
      serviceAccountName: watcher
      restartPolicy: OnFailure
      containers:
      - name: wait
        image: quay.io/openshift/origin-cli:4.16
        command: [/bin/bash, -c]
        args:
        - |
          sleep 10
          until oc wait --for condition=updated --timeout=60s mcp worker; do sleep 10; done
"""
LAST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: after
  annotations: {argocd.argoproj.io/sync-wave: "2"}
"""


@pytest.mark.parametrize(
    "annotations",
    ["argocd.argoproj.io/hook: PostSync", 'argocd.argoproj.io/sync-wave: "1"'],
    ids=["after-the-sync", "between-waves"],
)
def test_a_job_that_waits_for_the_pool_does_not_wait_for_the_hold_of_its_own_sync(
    tmp_path: Path, annotations: str
) -> None:
    folder = tmp_path / "greeting"
    folder.mkdir()
    for name, text in {"config": CONFIG, "rights": RIGHTS, "job": JOB % annotations, "last": LAST}.items():
        (folder / f"{name}.yaml").write_text(text)
    step = Step("all of it", until=(Until("pool/worker", "Updated"),))
    story = Scenario(
        folder,
        "greeting",
        sources=({"repoURL": PLACE, "targetRevision": "main", "path": "greeting"},),
        policy={"automated": {}},
        namespace="default",
        steps=(step,),
        nodes=(MASTERS[0], WORKER, NodeShape("okd-worker-02", ("worker",))),
        machine_config=True,
        whole=True,
    )
    show = Simulation(story, tmp_path / "scratch")
    show.begin()
    told = transcript(show.stage, show.simulate(step))
    assert "Succeeded: successfully synced" in told
    all_updated(show)
    assert boots(show) == {"okd-master-01": 1, "okd-worker-01": 2, "okd-worker-02": 2}

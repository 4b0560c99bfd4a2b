"""What ``syncline rehearse --demo`` rehearses: a change of a machine, and the single worker that it has to leave."""

from __future__ import annotations

from pathlib import Path

from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld, parse_world
from syncline.rehearsal.playing import Asked

NAME = "shop"
WEB = """\
# The shop: two pods, one of which has to stay up.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: quay.io/example/web:1
        ports: [{containerPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec:
  minAvailable: 1
  selector:
    matchLabels: {app: web}
"""
CHRONY = """\
# The change: another time server, which needs a drain and a reboot.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-chrony
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  config:
    ignition: {version: 3.2.0}
    storage:
      files:
      - path: /etc/chrony.conf
        mode: 420
        overwrite: true
        contents: {source: "data:,server%20time.example.com%20iburst%0A"}
"""
WORLD = """\
# An edge site: three masters that take no work, and one worker.
machineConfig: true
nodes:
- name: master
  count: 3
  roles: [master]
  taints: ["node-role.kubernetes.io/master:NoSchedule"]
- name: worker
  count: 1
  roles: [worker]
"""


def demonstration() -> Asked:
    """Return the rehearsal of the demo: the shop runs, and the change arrives."""
    world: GivenWorld = parse_world(WORLD, Path("world.yaml"), Files({}))
    before = Files({"web.yaml": WEB.encode()})
    return Asked(NAME, before.changed({"chrony.yaml": CHRONY}), world, before)

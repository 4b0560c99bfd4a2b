"""What was deployed before a commit is at rest when it arrives, as if it had been installed long ago."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from syncline.kube.objects import dig, name_of, namespace_of
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.playing import Asked, Play

WORLD = """\
machineConfig: true
nodes:
- {name: m, roles: [master], taints: ["node-role.kubernetes.io/master:NoSchedule"]}
- {name: w, count: 3, roles: [worker]}
"""
FILES = Files(
    {
        "web.yaml": b"""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
""",
        "machines.yaml": b"""\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-site, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config:
    ignition: {version: 3.2.0}
    storage: {files: [{path: /etc/site, mode: 420, contents: {source: "data:,one"}}]}
""",
    }
)
OF_THE_WAY = ("Event", "Lease", "MachineConfigNode", "ControllerConfig")
"""Kinds that tell what happened when, and to which machine."""
CONFIG = "machineconfiguration.openshift.io"
MADE = frozenset(
    (
        *(
            "uid",
            "resourceVersion",
            "generation",
            "observedGeneration",
            "managedFields",
            "revision",
            "history",
            "message",
        ),
        *("nodeName", "hostIP", "hostIPs", "podIP", "podIPs", "clusterIP", "clusterIPs", "addresses", "containerID"),
        *("conditions", "revisions", "bootID", "machineID", "syncline.dev/boots", "syncline.dev/operation"),
        *("syncline.dev/operation-started", f"{CONFIG}/lastAppliedDrain", f"{CONFIG}/firstPivotConfig"),
        *(f"{CONFIG}/lastSyncedControllerConfigResourceVersion", f"{CONFIG}/post-config-action"),
    )
)
"""What is drawn, counted, or a memory of the way."""
DRAWN = re.compile(r"(?<=-)[a-z0-9]{5}$|^10\.96\..*")


def played(folder: Path, before: Files | None) -> Play:
    folder.mkdir(exist_ok=True)
    asked = Asked("site", FILES, parse_world(WORLD, Path("world.yaml"), Files({})), before)
    play = Play(asked, folder)
    play.prepare()
    return play


def test_machines_have_the_configs_of_before_and_none_is_drained_or_rebooted_for_them(tmp_path: Path) -> None:
    play = played(tmp_path, FILES)
    nodes = play.world.send("GET", "/api/v1/nodes")["items"]
    pool = play.world.send("GET", f"/apis/{CONFIG}/v1/machineconfigpools/worker")
    wanted = pool["spec"]["configuration"]["name"]
    assert "99-site" in [one["name"] for one in pool["spec"]["configuration"]["source"]]
    workers = [node for node in nodes if name_of(node).startswith("w-")]
    assert [dig(node, "metadata", "annotations", f"{CONFIG}/currentConfig") for node in workers] == [wanted] * 3
    assert not any(dig(one.obj, "spec", "unschedulable") for one in play.recorder.versions if one.ref.kind == "Node")
    pods = play.world.send("GET", "/api/v1/namespaces/site/pods")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["w-1", "w-2", "w-3"]


def test_the_state_equals_that_after_a_long_installation(tmp_path: Path) -> None:
    """There the machines are first, each is drained and rebooted for the config, and Events are kept."""
    at_rest = played(tmp_path / "short", FILES)
    long = played(tmp_path / "long", None)
    long.commit(FILES)
    long.run(timedelta(hours=24))
    assert any(dig(one.obj, "spec", "unschedulable") for one in long.recorder.versions if one.ref.kind == "Node")
    short, wanted = said(at_rest), said(long)
    assert not short - wanted
    assert [(kind, name) for kind, _, name, _ in wanted - short] == [("MachineConfig", left(long))]


def left(play: Play) -> str:
    """Return the config that the workers had until they got the one of the commit."""
    made = [one for one in play.recorder.versions if one.ref.name.startswith("rendered-worker-") and not one.gone]
    return made[0].ref.name


def said(play: Play) -> Counter[tuple[str, str, str, str]]:
    """Return what is in the store, without what is made by chance or by the way."""
    store = play.world.core.store
    objects = [one.obj for resource in store.resources() for one in store.list(resource)]
    return Counter(
        (obj["kind"], namespace_of(obj), DRAWN.sub("", name_of(obj)), repr(sorted(fields(obj, ""))))
        for obj in objects
        if obj["kind"] not in OF_THE_WAY
    )


def fields(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in MADE and not key.endswith(("At", "Time", "Timestamp")):
                yield from fields(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from fields(each, f"{path}[]")
    else:
        yield f"{path}={DRAWN.sub('', str(value))}"

"""Sets that the tests of this folder share, and what they bring to the cluster."""

from __future__ import annotations

from typing import Any

from tests.appset.sets import HERE, appset, rows
from tests.appset.stage import Stage

from syncline.kube.objects import Obj

CONFIGS = "/api/v1/namespaces/default/configmaps"
ROOT = "kube-root-ca.crt"


def by_directory(**given: Any) -> Obj:
    git = {"repoURL": "https://example.com/r.git", "revision": "HEAD", "directories": [{"path": "*"}]}
    spec = deployed("{{path}}")
    return appset({"git": git}, template={"name": "{{path.basename}}"}, app=spec, **given)


def deployed(path: str) -> Obj:
    source = {"repoURL": "https://example.com/r.git", "path": path, "targetRevision": "main"}
    policy = {"automated": {"prune": True}}
    return {"source": source, "destination": {"server": HERE, "namespace": "default"}, "syncPolicy": policy}


def configs(one: Stage) -> list[str]:
    return [name for name in one.names(CONFIGS) if name != ROOT]


def rolled(**given: Any) -> Obj:
    names = (rows("d1", "d2", env="dev"), rows("p1", env="prod"))
    steps = [{"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]} for env in ("dev", "prod")]
    strategy = {"type": "RollingSync", "rollingSync": {"steps": steps}, **given.pop("strategy", {})}
    labels = {"name": "{{n}}", "labels": {"env": "{{env}}"}}
    return appset(*names, template=labels, app=deployed("{{n}}"), strategy=strategy, **given)


def commits(one: Stage) -> dict[str, str]:
    found = {name: one.get(f"{CONFIGS}/{name}") for name in ("d1", "d2", "p1")}
    return {name: obj["data"]["k"] for name, obj in found.items() if obj is not None}

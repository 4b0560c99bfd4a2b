"""A fleet in virtual time whose ApplicationSet rolls out over five clusters: a canary, then two waves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.fleet.test_pull_controllers import SETS
from tests.fleet.test_pull_whole import fleet_of
from tests.fleet.world import Fleet, config_map
from tests.gitops.behaviours.sim import Source

from syncline.fleet.pull import names
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, HEALTHY_FOR
from syncline.fleet.pull.order.release import is_application, manifests_of
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, namespace_of

WAVES = {"c1": 0, "c2": 1, "c3": 1, "c4": 2, "c5": 2}
ROLLOUT = "/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts/set"


def ordered_set(revision: str = "v1", healthy_for: str = "2m") -> Obj:
    metadata = {
        "name": "web-{{cluster}}",
        "labels": {names.PULL: "true"},
        "annotations": {
            names.CLUSTER: "{{cluster}}",
            "argocd.argoproj.io/skip-reconcile": "true",
            CLUSTER_WAVE: "{{wave}}",
            HEALTHY_FOR: healthy_for,
        },
    }
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a", "targetRevision": revision},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    rows = [{"cluster": name, "wave": str(wave)} for name, wave in WAVES.items()]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "set"}}
    return {
        **kind,
        "spec": {"generators": [{"list": {"elements": rows}}], "template": {"metadata": metadata, "spec": spec}},
    }


class Breakable(Source):
    """A repository whose revision ``bad`` cannot be rendered."""

    def read(self, sources: Any, revisions: tuple[str, ...], now: datetime, *context: Any) -> Manifests:
        if "bad" in revisions:
            return Manifests((), (), (), now, error="the chart does not render")
        return super().read(sources, revisions, now, *context)


def five() -> Fleet:
    return fleet_of({name: Breakable(config_map("web", cluster=name)) for name in WAVES})


def spec(fleet: Fleet, **parts: Any) -> None:
    """Write what people decide about the roll-out; None takes it away."""
    fleet.hub.send("PATCH", ROLLOUT, {"spec": parts})


def push(fleet: Fleet, revision: str) -> None:
    """Change the revision of all Applications of the set."""
    body = {"spec": {"template": {"spec": {"source": {"targetRevision": revision}}}}}
    fleet.hub.send("PATCH", f"{SETS}/set", body)
    fleet.time.advance(2)  # until the order has seen it


def carried(fleet: Fleet) -> dict[str, str]:
    """Return the revision that the work of each cluster carries."""
    found = {}
    for work in fleet.hub.get("/apis/work.open-cluster-management.io/v1/manifestworks")["items"]:
        app = next(one for one in manifests_of(work) if is_application(one))
        found[namespace_of(work)] = app["spec"]["source"]["targetRevision"]
    return found


def rollout(fleet: Fleet) -> Obj:
    return fleet.hub.get(ROLLOUT)


def until(fleet: Fleet, seconds: int, *wanted: str) -> Obj:
    """Let time pass until the roll-out is in one of these phases; returns it."""
    for _ in range(seconds // 5):
        fleet.time.advance(5)
        if not fleet.hub.absent(ROLLOUT) and (found := rollout(fleet)).get("status", {}).get("phase") in wanted:
            return found
    raise AssertionError(f"not {wanted} after {seconds} s: {rollout(fleet).get('status')}")

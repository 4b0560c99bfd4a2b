"""The oracle of rehearsed fleets: the same fleet with a hub and agents for real, in one world and without classes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.fleet.world import Fleet

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.assembly.sources.reading import GitSourceReader
from syncline.control.executor import run_in_place
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.order.revisions import Resolution, Tracked
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.fleet.given import FleetWorld, parse_fleet
from syncline.rehearsal.fleet.hubobjects import for_the_hub
from syncline.rehearsal.fleet.rehearsing import FleetAsked, rehearse_fleet
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.rehearsing import Settings
from syncline.rehearsal.repository import commit_files

URL = "https://git.example.com/web.git"
ROLLOUT = "/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts/web"
TEXT = """\
clusters:
- {name: canary, labels: {size: small, syncline.dev/cluster-wave: "0"}, durations: &quick {pull: 1s, start: 500ms}}
- {name: small, count: 2, labels: {size: small, syncline.dev/cluster-wave: "1"}, durations: *quick}
- {name: large, count: 2, labels: {size: large, syncline.dev/cluster-wave: "1"}, durations: *quick}
- {name: last, labels: {size: small, syncline.dev/cluster-wave: "2"}, durations: *quick}
"""
SLACK_S = 3.0
"""An agent reports after a moment, and times of a status are whole seconds."""


def _set() -> Obj:
    apps = "apps.open-cluster-management.io"
    metadata = {
        "name": "{{name}}-web",
        "labels": {f"{apps}/pull-to-ocm-managed-cluster": "true"},
        "annotations": {
            f"{apps}/ocm-managed-cluster": "{{name}}",
            "argocd.argoproj.io/skip-reconcile": "true",
            "syncline.dev/healthy-for": "30s",
        },
    }
    spec = {
        "project": "default",
        "source": {"repoURL": URL, "path": "web/{{metadata.labels.size}}", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    generators = [{"clusters": {"selector": {"matchExpressions": [{"key": "size", "operator": "Exists"}]}}}]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    named = {"name": "web", "namespace": "argocd"}
    template = {"metadata": metadata, "spec": spec}
    return {**kind, "metadata": named, "spec": {"generators": generators, "template": template}}


def _importer() -> Obj:
    placement = {"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": "all"}
    spec = {"argoServer": {"cluster": "notused", "argoNamespace": "argocd"}, "placementRef": placement}
    kind = {"apiVersion": "apps.open-cluster-management.io/v1beta1", "kind": "GitOpsCluster"}
    return {**kind, "metadata": {"name": "importer", "namespace": "argocd"}, "spec": spec}


def fleet_files(version: str) -> Files:
    content = {"hub/web.yaml": dump(_set()), "hub/importer.yaml": dump(_importer())}
    for size, ready_s in (("small", 0), ("large", 40)):
        labels = {"app": "web"}
        container = {"name": "web", "image": "example.com/web", "env": [{"name": "VERSION", "value": version}]}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "minReadySeconds": ready_s, "selector": {"matchLabels": labels}, "template": template}
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        content[f"web/{size}/web.yaml"] = dump(made)
    return Files({path: text.encode() for path, text in content.items()})


class _Local(GitSourceReader):
    """Reads the repository of this test at its address, at the revisions that are asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "mirrors", allow_local=True)
        self.place = str(folder / "web")

    def _here(self, sources: tuple[Obj, ...]) -> tuple[Obj, ...]:
        return tuple({**one, "repoURL": self.place} for one in sources)

    def read(self, sources: tuple[Obj, ...], *rest: Any, **more: Any) -> Manifests:
        return super().read(self._here(sources), *rest, **more)

    def poll(self, sources: tuple[Obj, ...], *rest: Any, **more: Any) -> Manifests:
        return super().poll(self._here(sources), *rest, **more)

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        return super().resolve(replace(tracked, url=self.place), now, since=since, wanted=wanted)


def whole(world: FleetWorld, before: Files, after: Files, folder: Path) -> dict[int, tuple[float, float]]:
    """Return when the first cluster of each wave got the commit, and when the last one had proved it, in seconds since
    the hub knew of it."""
    fleet, reader = Fleet(), _Local(folder)
    commit_files(before, Path(reader.place))
    settings = PullSettings(poll_s=20.0)
    fleet.start_role(pull_role(settings, reader=reader, objects=tuple(pull_objects(settings))))
    fleet.start_gitops(fleet.hub, reader)
    for name, group in world.clusters().items():
        fleet.start_gitops(fleet.add(name, labels=group.labels, nodes=3), reader, AppSettings(poll_s=3600.0))
    run_in_place(ensure_objects(for_the_hub(before, Files({}), "web").objects), fleet.hub.admin)
    old = _waited(fleet, "Done")["release"]
    _commit(Path(reader.place), after)
    began: datetime | None = None
    begins: dict[int, float] = {}
    ends: dict[int, float] = {}
    for _ in range(400):
        fleet.time.advance(1)
        status = fleet.hub.get(ROLLOUT)["status"]
        if status["release"] == old:
            continue
        began = began or fleet.clock.now()
        now = (fleet.clock.now() - began).total_seconds()
        for wave in status["waves"]:
            if wave["pending"] < wave["total"]:
                begins.setdefault(wave["wave"], now)
            if wave["done"] == wave["total"]:
                ends.setdefault(wave["wave"], now)
        if status["phase"] == "Done":
            return {wave: (begins[wave], ends[wave]) for wave in ends}
    raise AssertionError(fleet.hub.get(ROLLOUT)["status"])


def _waited(fleet: Fleet, phase: str) -> Obj:
    for _ in range(100):
        fleet.time.advance(5)
        if not fleet.hub.absent(ROLLOUT) and (found := fleet.hub.get(ROLLOUT).get("status", {})).get("phase") == phase:
            return dict(found)
    raise AssertionError(f"not {phase}")


def _commit(place: Path, files: Files) -> None:
    for path, data in files.content.items():
        (place / path).write_bytes(data)
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "-am", "two"], check=True, timeout=60)


def test_classes_of_clusters_take_their_turns_when_the_whole_fleet_does(tmp_path: Path) -> None:
    world, before, after = parse_fleet(TEXT, Path("fleet.yaml"), Files({})), fleet_files("1"), fleet_files("2")
    asked = FleetAsked("web", after, world, before)
    found = rehearse_fleet(asked, tmp_path / "classes", Settings(cures=False, ranged=False), processes=1)
    assert found.outcome is Outcome.SAFE
    assert [one.clusters for one in found.classes] == [("canary", "small-1", "small-2", "last"), ("large-1", "large-2")]
    (tmp_path / "whole").mkdir()
    for wave, (begins, ends) in whole(world, before, after, tmp_path / "whole").items():
        mine = found.waves[wave]
        assert mine.begins_s is not None and mine.ends_s is not None
        took = mine.ends_s - mine.begins_s
        assert abs(took - (ends - begins)) <= SLACK_S, (wave, mine, begins, ends)
        assert abs(mine.begins_s - begins) <= SLACK_S * (wave + 1), (wave, mine, begins, ends)

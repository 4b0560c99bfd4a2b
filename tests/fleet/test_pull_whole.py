"""The way of an Application in the pull model: from an ApplicationSet of the hub to each cluster, and back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.test_pull_controllers import APPS, REPORTS, SETS
from tests.fleet.world import Fleet, config_map
from tests.gitops.behaviours.sim import Source

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull import names
from syncline.fleet.pull.controller import PullSettings
from syncline.kube.objects import Obj

WEB = "/api/v1/namespaces/default/configmaps/web"


def _set(*clusters: str) -> Obj:
    metadata = {
        "name": "web-{{cluster}}",
        "labels": {names.PULL: "true"},
        "annotations": {names.CLUSTER: "{{cluster}}", "argocd.argoproj.io/skip-reconcile": "true"},
    }
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    generators = [{"list": {"elements": [{"cluster": name} for name in clusters]}}]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "set"}}
    return {**kind, "spec": {"generators": generators, "template": {"metadata": metadata, "spec": spec}}}


class Rows(Source):
    """A source that ApplicationSets can ask, too; the sets here ask nothing."""

    def rows(self, *_: Any) -> Any:
        raise AssertionError("a list generator asks nothing")

    def moment(self) -> int:
        return 0


@pytest.fixture
def fleet() -> Fleet:
    made, settings = Fleet(), PullSettings()
    made.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    made.start_gitops(made.hub, Rows())
    for name in ("c1", "c2"):
        member = made.add(name)
        made.start_gitops(member, Source(config_map("web", cluster=name)))
    made.time.settle()
    return made


def test_an_application_travels_is_synced_by_its_cluster_and_reports_home(fleet: Fleet) -> None:
    fleet.hub.send("POST", SETS, _set("c1", "c2"))
    fleet.time.advance(180)
    for name in ("c1", "c2"):
        assert fleet.members[name].get(WEB)["data"] == {"cluster": name}
        app = fleet.hub.get(f"{APPS.format('argocd')}/web-{name}")
        assert (app["status"]["health"]["status"], app["status"]["sync"]["status"]) == ("Healthy", "Synced")
    assert fleet.hub.absent(WEB)
    summary = fleet.hub.get(f"{REPORTS}/set")["statuses"]["summary"]
    assert (summary["clusters"], summary["healthy"], summary["synced"]) == ("2", "2", "2")

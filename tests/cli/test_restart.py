"""Commands that follow an Application, before and after the cluster was started anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.live import served_cluster

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.gitops import gitops_objects
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.cli.app.target import until
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GVK, annotations_of

WHERE = ("argocd", "shop")
MAPS = GVK("", "v1", "ConfigMap")
SPEC = {
    "project": "default",
    "source": {"repoURL": "https://example.com/r.git", "path": "."},
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
}


def test_an_application_that_is_older_than_what_the_server_remembers_is_followed(tmp_path: Path) -> None:
    settings = ClusterSettings(data=tmp_path / "data", controllers=())
    app: dict[str, Any] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}}
    with served_cluster(tmp_path, settings) as served, Connection(str(served.kubeconfig)) as link:
        link.run(ensure_objects(gitops_objects("argocd")))
        link.ask(client.create(link.resource(APPLICATION), app | {"spec": SPEC}, namespace="argocd"))
        link.ask(client.create(link.resource(MAPS), {"metadata": {"name": "later"}}, namespace="default"))
    with served_cluster(tmp_path, settings) as served, Connection(str(served.kubeconfig)) as link:
        views = []

        def reached(found: dict[str, Any]) -> bool:
            """Nothing at the first look; that look also makes the change that is waited for."""
            views.append(annotations_of(found).get("told", ""))
            if len(views) == 1:
                body = {"metadata": {"annotations": {"told": "yes"}}}
                with Connection(str(served.kubeconfig)) as other:
                    other.ask(client.patch(other.resource(APPLICATION), *WHERE, PatchType.MERGE, body))
            return views[-1] == "yes"

        assert until(link, WHERE, reached, 300, "the change")["metadata"]["name"] == "shop"
        assert views == ["", "yes"]

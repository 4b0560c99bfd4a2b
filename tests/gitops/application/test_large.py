"""Where plans of large Applications are made."""

from __future__ import annotations

import pytest

from syncline.argo.application import AppView
from syncline.gitops.application.controller import MOST_IN_PLACE, Applications
from syncline.gitops.application.manifests import ManifestStore
from syncline.gitops.application.observing.observe import AppObserved, AppSettings
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import Obj, ObjectRef

APP: Obj = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "app", "namespace": "argocd"},
    "spec": {"project": "team"},
}


@pytest.mark.parametrize(("count", "share"), [(MOST_IN_PLACE, None), (MOST_IN_PLACE + 1, "team")])
def test_a_large_application_is_planned_beside_the_loop_on_the_account_of_its_project(
    count: int, share: str | None
) -> None:
    live: dict[ObjectRef, Obj] = {ObjectRef("", "ConfigMap", "web", f"c-{number}"): {} for number in range(count)}
    observed = AppObserved(AppView(APP), None, None, None, live, KindTable({}), AppSettings())
    beside = Applications(ManifestStore(), AppSettings()).controller().beside
    assert beside is not None and beside(observed) == share

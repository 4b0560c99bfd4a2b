"""Which reports of status wake an Application."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from syncline.argo.application import AppView
from syncline.argo.settings import System, parse_system
from syncline.gitops.application.observing.observe import AppObserved, AppSettings
from syncline.gitops.application.reports import Reports
from syncline.gitops.comparison.targets import KindTable
from syncline.kube.objects import Obj, ObjectRef

REF = ObjectRef("argoproj.io", "Application", "argocd", "shop")


def application(**spec: Any) -> Obj:
    metadata = {"name": REF.name, "namespace": REF.namespace, "uid": "u"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def observed(app: Obj, system: Any = None) -> AppObserved:
    settings = System(parse_system(system or {}), System().parameters)
    return replace(AppObserved(AppView(app), None, None, None, {}, KindTable({}), AppSettings()), system=settings)


def deployment(version: str, ready: int, generation: int = 1, image: str = "shop:1") -> Obj:
    status = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "web", "resourceVersion": version, "generation": generation},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
        "status": status | {"observedGeneration": 1},
    }


def matters(app: Obj, old: Obj, new: Obj, system: Any = None) -> bool:
    reports = Reports()
    reports.note(REF, observed(app, system))
    return reports.matters(old, new, [REF])


def test_a_report_that_leaves_health_as_it_was_wakes_no_application() -> None:
    healthy, still = deployment("7", 2), deployment("8", 2) | {"status": deployment("8", 2)["status"] | {"other": 1}}
    assert not matters(application(), healthy, still)


def test_a_report_that_changes_health_and_a_new_spec_do() -> None:
    assert matters(application(), deployment("7", 1), deployment("8", 2))
    assert matters(application(), deployment("7", 2), deployment("8", 2, image="shop:2"))
    assert matters(application(), deployment("7", 2), deployment("8", 2, generation=2))
    assert Reports().matters(deployment("7", 2), deployment("8", 2), [REF])


@pytest.mark.parametrize(
    ("app", "system"),
    [
        (application() | {"operation": {"sync": {}}}, {}),
        (application(ignoreDifferences=[{"kind": "Deployment", "jqPathExpressions": [".spec"]}]), {}),
        (application(), {"resource.compareoptions": "ignoreResourceStatusField: none"}),
        (application(), {"resource.customizations.ignoreDifferences.apps_Deployment": "managedFieldsManagers: [hpa]"}),
        (application(), {"resource.customizations.health.apps_Deployment": "return {status = 'Healthy'}"}),
    ],
)
def test_every_report_wakes_an_application_that_may_read_it(app: Obj, system: dict[str, str]) -> None:
    old = deployment("7", 2)
    new = deployment("8", 2) | {"status": old["status"] | {"other": 1}}
    assert matters(app, old, new, system)

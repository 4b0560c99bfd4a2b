"""The rights in ``deploy/patterns.yaml`` are enough for a Pattern; its controllers bear failing writes and deaths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.assembly.test_deploy import manifests
from tests.patterns.installing import APPS, PATTERNS, Installed
from tests.patterns.operating import Flaky
from tests.patterns.test_pattern_installed import PRUNE, child, config

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.patterns.role import PatternSettings, foreign_pattern_objects, pattern_objects, patterns_role
from syncline.control.executor import run_in_place
from syncline.kube.client import Transport
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.kinds.operatorlifecycle import operator_crds
from syncline.patterns.argocd.plan import MANAGER

CHART = "https://charts.validatedpatterns.io/"
CHILD = "https://git.example.com/child"


class Limited(Installed):
    """The role with the rights of its file alone."""

    def start(self) -> None:
        kinds = [*foreign_pattern_objects(), *operator_crds(), *hub_cluster_crds()]
        run_in_place(ensure_objects([*kinds, *manifests("patterns.yaml")]), self.world.admin)
        role = patterns_role(PatternSettings(), self.repositories, self.world.begin_instance)
        self.world.start_role(replace(role, objects=()))


class Faulty(Installed):
    """The role behind a connection on which each third write fails."""

    def start(self) -> None:
        self.begin(lambda inner: Flaky(inner, 3))

    def begin(self, wrap: Callable[[Transport], Transport]) -> None:
        role = patterns_role(PatternSettings(), self.repositories, self.world.begin_instance)
        self.stop = self.world.start_role(replace(role, objects=tuple(pattern_objects())), wrap)


def lived(stage: Installed) -> None:
    stage.repositories.objects = {CHART: (config("of-the-group"), child()), CHILD: (config("of-the-child"),)}
    stage.install()
    stage.driver.until(lambda: "of-the-child" in stage.names("/api/v1/namespaces/default/configmaps"), 900)
    assert stage.step() == ("reconcile complete", "")


def removed(stage: Installed) -> None:
    stage.patch(f"{PATTERNS}/mypattern", {"metadata": {"annotations": {PRUNE: "true"}}})
    stage.send("DELETE", f"{PATTERNS}/mypattern")
    stage.driver.until(lambda: stage.get(f"{PATTERNS}/mypattern") is None, 1800)
    assert stage.names(APPS.format("vp-gitops")) == []
    assert not {"of-the-group", "of-the-child"} & set(stage.names("/api/v1/namespaces/default/configmaps"))


@pytest.mark.parametrize("kind", [Limited, Faulty], ids=["rights-of-the-file", "failing-writes"])
def test_a_pattern_is_installed_and_taken_down(kind: type[Installed]) -> None:
    stage = kind()
    lived(stage)
    removed(stage)
    made = [one.what for one in stage.world.journal if one.who == "pattern" and one.what.startswith("create ")]
    assert sorted(set(made)) == sorted(made) or kind is Faulty, "nothing is made twice"


def test_no_right_of_the_file_gives_more_than_one_role() -> None:
    binds = [
        rule
        for one in manifests("patterns.yaml")
        for rule in one.get("rules") or ()
        if {"bind", "escalate", "impersonate"} & set(rule["verbs"])
    ]
    assert [rule["resourceNames"] for rule in binds] == [["cluster-admin"]]


@pytest.mark.parametrize("at_s", [1, 4])
def test_controllers_that_die_on_the_way_go_on_where_they_were(at_s: int) -> None:
    stage = Faulty()
    stage.stop()
    stage.begin(lambda inner: inner)
    stage.repositories.objects = {CHART: (config("of-the-group"),)}
    spec = {"clusterGroupName": "hub", "gitSpec": {"targetRepo": "https://git.example.com/org/mypattern"}}
    body = {
        "apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1",
        "kind": "Pattern",
        "metadata": {"name": "mypattern"},
    }
    stage.send("POST", PATTERNS, body | {"spec": spec})
    stage.driver.advance(at_s)
    stage.stop()
    stage.driver.advance(60)
    stage.begin(lambda inner: inner)
    stage.driver.until(lambda: "of-the-group" in stage.names("/api/v1/namespaces/default/configmaps"), 900)
    assert stage.step() == ("reconcile complete", "")
    accounts = stage.names("/api/v1/namespaces/vp-gitops/serviceaccounts")
    assert "vp-gitops-argocd-application-controller" in accounts and MANAGER not in accounts

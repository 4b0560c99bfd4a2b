"""Behaviours 33 to 54 of the cluster group reference: Applications, projects, hubs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.clustergroup.groups import HUB, SPOKE, application, made, names, of, one

from syncline.clustergroup.errors import ValuesRefused
from syncline.kube.objects import Obj, dig
from syncline.sources.helm.values import values_paths

GLOBALS = (
    "repoURL",
    "originURL",
    "targetRevision",
    "namespace",
    "pattern",
    "clusterDomain",
    "localClusterName",
    "clusterVersion",
    "clusterPlatform",
    "hubClusterDomain",
    "multiSourceSupport",
    "multiSourceRepoUrl",
    "multiSourceTargetRevision",
    "localClusterDomain",
    "privateRepo",
    "experimentalCapabilities",
    "deletePattern",
    "gitOpsSubNamespace",
    "vpArgoNamespace",
)
MANDATORY = ["/values-global.yaml", "/values-hub.yaml"]
REMOTE = {"chart": "web", "repoURL": "https://charts.example.com", "chartVersion": "1.2.*", "path": None}
PATTERN: Obj = {"repoURL": "https://git.example.com/p", "targetRevision": "stable"}


def helm(found: Obj) -> Obj:
    return dig(found, "spec", "source", "helm") or dig(found, "spec", "sources")[1]["helm"]


def parameters(found: Obj) -> dict[str, Any]:
    return {n["name"]: n["value"] for n in helm(found)["parameters"]}


@pytest.mark.parametrize("form", [list, dict])
def test_b33_null_and_disabled_applications_are_skipped(form: type) -> None:
    given: Obj = {
        "a": {"name": "a", "path": "p"},
        "b": None,
        "c": {"name": "c", "path": "p", "disabled": True},
    }
    listed: Any = [n for n in given.values() if n is not None] if form is list else given
    assert names(made(applications=listed), "Application") == ["a"]


def test_b34_an_application_goes_to_the_groups_namespace_by_the_clusters_name() -> None:
    assert application()["spec"]["destination"] == {"name": "in-cluster", "namespace": "shop-hub"}
    found = application(namespace="web", group={"targetCluster": "edge"})
    assert found["spec"]["destination"] == {"name": "edge", "namespace": "web"}


@pytest.mark.parametrize(
    ("given", "project"),
    [({"argoProject": "a", "project": "b"}, "a"), ({"project": "b"}, "b"), ({}, "default")],
)
def test_b35_argo_project_wins_over_project(given: Obj, project: str) -> None:
    assert application(**given)["spec"]["project"] == project


def test_b36_two_value_files_are_always_named() -> None:
    assert helm(application())["valueFiles"] == MANDATORY
    assert helm(application())["ignoreMissingValueFiles"] is True


LAYERS = ["/values-AWS.yaml", "/values-AWS-4.16.yaml", "/values-AWS-hub.yaml", "/values-4.16-hub.yaml"]


def test_b37_platform_and_version_add_layers() -> None:
    shared = {"clusterPlatform": "AWS", "clusterVersion": "4.16"}
    assert helm(application(shared))["valueFiles"] == [*MANDATORY, *LAYERS]
    assert helm(application({**shared, "localClusterName": "one"}))["valueFiles"] == [
        *MANDATORY,
        *LAYERS,
        "/values-one.yaml",
    ]


def test_b38_extra_files_follow_the_layers() -> None:
    found = application(
        {"extraValueFiles": ["/a.yaml"]}, extraValueFiles=["/c.yaml"], group={"sharedValueFiles": ["/b.yaml"]}
    )
    assert helm(found)["valueFiles"] == [*MANDATORY, "/a.yaml", "/b.yaml", "/c.yaml"]


@pytest.mark.parametrize(
    ("shared", "file"),
    [({"clusterPlatform": "AWS"}, "/o/values-AWS.yaml"), ({}, "/o/values-.yaml")],
    ids=["set", "unset"],
)
def test_b39_shared_files_are_templates_and_may_be_missing(shared: Obj, file: str) -> None:
    template = "/o/values-{{ $.Values.global.clusterPlatform }}.yaml"
    found = helm(application(shared, group={"sharedValueFiles": [template]}))
    assert found["valueFiles"][-1] == file
    there = values_paths(
        "p",
        found["valueFiles"],
        ignore_missing=found["ignoreMissingValueFiles"],
        exists=lambda path: path == "values-hub.yaml",
        listing=list,
    )
    assert there == ["values-hub.yaml"], "a file that is not there stops no sync"


def test_b40_a_chart_version_makes_two_sources() -> None:
    found = application({**PATTERN, "clusterPlatform": "AWS"}, **REMOTE)
    first, second = found["spec"]["sources"]
    assert first == {**PATTERN, "ref": "patternref"}
    assert (second["chart"], second["repoURL"]) == ("web", "https://charts.example.com")
    assert all(n.startswith("$patternref/values-") for n in second["helm"]["valueFiles"])


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("$patternref/x.yaml", "$patternref/x.yaml"),
        ("foo.yaml", "$patternreffoo.yaml"),
        ("/y.yaml", "$patternref/y.yaml"),
    ],
    ids=["has it", "without a slash", "with a slash"],
)
def test_b41_the_reference_is_put_before_what_has_none(given: str, file: str) -> None:
    assert helm(application(extraValueFiles=[given], **REMOTE))["valueFiles"][-1] == file


def test_b42_the_charts_version_is_the_second_sources() -> None:
    found = application(PATTERN, targetRevision="ignored", **REMOTE)
    assert [n["targetRevision"] for n in found["spec"]["sources"]] == ["stable", "1.2.*"]


def test_b43_nineteen_parameters_and_the_nested_ones() -> None:
    wanted = [f"global.{name}" for name in GLOBALS]
    assert list(parameters(application())) == wanted
    assert len(wanted) == 19
    found = application(top={"extraParametersNested": {"b": "2", "a": "1"}})
    assert list(parameters(found)) == [*wanted, "a", "b"]


def test_b44_a_parameter_falls_back_to_the_hubs_domain_and_a_field_does_not() -> None:
    found = parameters(application({"hubClusterDomain": HUB}, extraLocalClusterDomainFields=["x"]))
    assert (found["x"], found["global.localClusterDomain"]) == (None, HUB)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"value": True}, {"value": "true"}),
        ({"value": "{{ .Values.global.repoURL }}"}, {"value": PATTERN["repoURL"]}),
        ({"value": "1", "forceString": True}, {"value": "1", "forceString": True}),
        ({"value": "1", "forceString": False}, {"value": "1"}),
        ({}, {"value": "<nil>"}),
    ],
)
def test_b45_overrides_are_texts_and_templates(given: Obj, wanted: Obj) -> None:
    found = helm(application(PATTERN, overrides=[{"name": "x", **given}]))["parameters"]
    assert found[-1] == {"name": "x", **wanted}


def test_b46_kustomize_has_no_helm_block_of_one_source() -> None:
    assert "helm" not in application(kustomize=True)["spec"]["source"]
    assert "helm" in application(kustomize=True, **REMOTE)["spec"]["sources"][1]


@pytest.mark.parametrize("given", [{}, REMOTE], ids=["one source", "two"])
def test_b47_a_plugin_replaces_helm(given: Obj) -> None:
    spec = application(plugin={"name": "mine"}, **given)["spec"]
    source = spec.get("source") or spec["sources"][1]
    assert (source["plugin"], "helm" in source) == ({"name": "mine"}, False)


@pytest.mark.parametrize(
    ("options", "own", "wanted"),
    [
        ({"syncPolicy": "Manual"}, {}, None),
        ({"syncPolicy": "Manual"}, {"syncPolicy": {"automated": {"prune": True}}}, {"automated": {"prune": True}}),
        ({"applicationRetryLimit": 100}, {}, {"automated": {}, "retry": {"limit": 100}}),
        ({}, {"syncPolicy": "MANUAL"}, None),
        ({}, {}, {"automated": {}, "retry": {"limit": 20}}),
    ],
)
def test_b48_an_applications_own_sync_policy_wins(options: Obj, own: Obj, wanted: Obj | None) -> None:
    assert application({"options": options}, **own)["spec"]["syncPolicy"] == wanted


def test_b49_differences_are_ignored_only_where_given() -> None:
    assert "ignoreDifferences" not in application()["spec"]
    assert application(ignoreDifferences=[{"kind": "X"}])["spec"]["ignoreDifferences"] == [{"kind": "X"}]


@pytest.mark.parametrize(("phase", "count"), [("DeleteChildApps", 0), ("DeleteSpoke", 2), ("none", 2)])
def test_b50_children_are_deleted_by_their_absence(phase: str, count: int) -> None:
    given = {name: {"name": name, "path": "p"} for name in ("a", "b")}
    assert len(of(made({"deletePattern": phase}, applications=given), "Application")) == count


def test_b51_both_names_of_the_projects_are_refused() -> None:
    with pytest.raises(ValuesRefused) as refused:
        made(projects=["a"], argoProjects=["b"])
    assert {n.path for n in refused.value.violations} >= {"/clusterGroup"}
    assert names(made(projects=[], argoProjects=["b"]), "AppProject") == ["b"]


@pytest.mark.parametrize(
    ("given", "top", "namespace"),
    [(["a"], {}, "shop-hub"), ({"a": {}}, {"enabled": "plumbing"}, "openshift-gitops"), ({"a": {}}, {}, "shop-hub")],
    ids=["list", "map in plumbing mode", "map"],
)
def test_b52_projects_are_where_argo_cd_is(given: Any, top: Obj, namespace: str) -> None:
    found = one(made(top=top, argoProjects=given), "AppProject")
    assert found["metadata"] == {"name": "a", "namespace": namespace}


VAULT = {"vault": {"name": "vault", "chart": "hashicorp-vault", "repoURL": "https://charts.example.com"}}
SPOKES = {"hubClusterDomain": HUB, "localClusterDomain": SPOKE}


@pytest.mark.parametrize(("store", "there"), [({}, True), ({"secretStore": {"backend": "kubernetes"}}, False)])
def test_b53_a_vault_on_a_spoke_is_unsealed(store: Obj, there: bool) -> None:
    found = made({**SPOKES, **store}, applications=VAULT)
    assert ("unsealvault-cronjob" in names(found, "CronJob"), "vault-pod-exec" in names(found, "Role")) == (
        there,
        there,
    )


@pytest.mark.parametrize(
    ("said", "shared", "hub"),
    [
        (None, {"hubClusterDomain": HUB, "localClusterDomain": HUB}, True),
        (None, SPOKES, False),
        (None, {"hubClusterDomain": HUB}, True),
        (None, {}, False),
        (False, {"hubClusterDomain": HUB, "localClusterDomain": HUB}, False),
        (True, SPOKES, True),
    ],
)
def test_b54_a_hub_has_the_hubs_domain_unless_it_says_otherwise(said: bool | None, shared: Obj, hub: bool) -> None:
    found = made(shared, isHubCluster=said)
    assert ("unsealvault-cronjob" in names(found, "CronJob")) is hub

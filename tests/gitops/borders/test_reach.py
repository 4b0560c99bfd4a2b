"""What a project lets its Applications name: a table of references and their answers."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.argo.clusters import HERE, Cluster
from syncline.argo.project.references import POOLS, Reach
from syncline.kube.objects import GroupKind, Obj, ObjectRef

CLUSTER_SCOPED = ("Node", "Namespace", "MachineConfigPool")


def scope(kind: GroupKind) -> bool | None:
    return None if kind.kind == "Unheard" else kind.kind not in CLUSTER_SCOPED


def project(name: str = "tenant", annotations: Obj | None = None, **spec: Any) -> Obj:
    base: Obj = {"destinations": [{"server": HERE.server, "namespace": "own"}], "sourceRepos": ["*"]}
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": base | spec}


DEFAULT = project(
    "default",
    destinations=[{"server": "*", "namespace": "*"}],
    clusterResourceWhitelist=[{"group": "*", "kind": "*"}],
)
OWN = ObjectRef("apps", "Deployment", "own", "db")


def refusal(ref: ObjectRef, rules: Obj | None = None, cluster: Cluster = HERE) -> str:
    return Reach(project() if rules is None else rules, cluster, (), scope).refuses(ref)


@pytest.mark.parametrize(
    ("ref", "rule"),
    [
        (OWN, ""),
        (OWN._replace(namespace="other"), "spec.destinations does not permit namespace 'other' of cluster in-cluster"),
        (OWN._replace(namespace=""), "spec.destinations does not permit namespace ''"),
        (ObjectRef("", "Node", "", "n1"), "spec.clusterResourceWhitelist does not list Node"),
        (ObjectRef("", "Node", "own", "n1"), "spec.clusterResourceWhitelist does not list Node"),
        (ObjectRef("x.io", "Unheard", "own", "a"), ""),
        (ObjectRef("x.io", "Unheard", "", "a"), "spec.clusterResourceWhitelist does not list Unheard"),
        (ObjectRef("x.io", "Unheard", "other", "a"), "namespace 'other'"),
    ],
)
def test_an_object_is_judged_as_the_applications_own(ref: ObjectRef, rule: str) -> None:
    told = refusal(ref)
    assert bool(told) is bool(rule) and rule in told
    assert not rule or "project tenant does not permit " in told


@pytest.mark.parametrize("rules", [project(), DEFAULT], ids=["tenant", "default"])
@pytest.mark.parametrize("kind", ["Secret", "secret", "SECRET", "Secrets", "secrets", "SecretList"])
@pytest.mark.parametrize("group", ["", "core", "v1"])
@pytest.mark.parametrize("namespace", ["own", "kube-system", ""])
def test_a_secret_is_refused_in_every_project_and_spelling(rules: Obj, kind: str, group: str, namespace: str) -> None:
    assert "Secrets are refused" in refusal(ObjectRef(group, kind, namespace, "s"), rules)


def test_a_kind_that_is_only_called_secret_is_an_object_as_any_other() -> None:
    assert refusal(ObjectRef("vault.example.com", "Secret", "own", "s")) == ""


@pytest.mark.parametrize(
    "ref",
    [
        OWN._replace(name="../other/db"),
        OWN._replace(name="x/Secret/kube-system/y"),
        OWN._replace(name=".."),
        OWN._replace(name="a%2Fb"),
        OWN._replace(name="a\nb"),
        OWN._replace(name=""),
        OWN._replace(name="a" * 254),
        OWN._replace(namespace="own/../other"),
        OWN._replace(namespace="OWN"),
        OWN._replace(kind="apps/Deployment"),
        OWN._replace(kind=""),
        OWN._replace(group="apps/v1"),
        OWN._replace(group="{'a': 1}"),
    ],
    ids=str,
)
def test_what_names_no_object_is_refused(ref: ObjectRef) -> None:
    assert "which no object can have" in refusal(ref, DEFAULT)


@pytest.mark.parametrize(
    ("spec", "ref", "rule"),
    [
        ({"namespaceResourceBlacklist": [{"group": "apps", "kind": "*"}]}, OWN, "spec.namespaceResourceBlacklist"),
        ({"namespaceResourceWhitelist": [{"group": "", "kind": "Pod"}]}, OWN, "spec.namespaceResourceWhitelist"),
        ({"clusterResourceWhitelist": [{"group": "", "kind": "Node"}]}, ObjectRef("", "Node", "", "n1"), ""),
        (
            {"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "own-*"}]},
            ObjectRef("", "Namespace", "", "other"),
            "spec.clusterResourceWhitelist",
        ),
        (
            {
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "clusterResourceBlacklist": [{"group": "", "kind": "Node"}],
            },
            ObjectRef("", "Node", "", "n1"),
            "spec.clusterResourceBlacklist lists Node",
        ),
    ],
)
def test_the_lists_of_the_project_decide_about_kinds(spec: Obj, ref: ObjectRef, rule: str) -> None:
    told = refusal(ref, project(**spec))
    assert bool(told) is bool(rule) and rule in told


def test_the_secret_of_a_cluster_bounds_what_is_seen_there() -> None:
    rules = DEFAULT | {"metadata": {"name": "wide"}}
    there = Cluster("https://far", "far", namespaces=("own",))
    assert refusal(OWN, rules, there) == ""
    assert "namespaces of the Secret of cluster far" in refusal(OWN._replace(namespace="other"), rules, there)
    assert "clusterResources of the Secret" in refusal(ObjectRef("", "Node", "", "n1"), rules, there)


def test_a_project_that_does_not_exist_sees_and_holds_nothing() -> None:
    assert Reach(None).refuses(OWN) and Reach(None).refuses_own(OWN) and not Reach(None).holds("worker")


@pytest.mark.parametrize(
    ("name", "pools", "held"),
    [
        ("default", None, True),
        ("default", "infra", False),
        ("default", "", False),
        ("tenant", None, False),
        ("tenant", "", False),
        ("tenant", "worker", True),
        ("tenant", "infra, work*", True),
        ("tenant", "*", True),
        ("tenant", "!infra", False),
        ("tenant", "[", False),
        ("tenant", "work", False),
        ("tenant", ",".join([*(f"p{n}" for n in range(100)), "worker"]), False),
    ],
)
def test_a_project_names_the_pools_that_it_may_hold(name: str, pools: str | None, held: bool) -> None:
    rules = project(name, {} if pools is None else {POOLS: pools})
    assert Reach(rules).holds("worker") is held
    told = Reach(rules).refuses_hold("worker")
    assert held or (f"project {name} may not hold pool worker" in told and POOLS in told)

"""Behaviours 55 to 64 of the cluster group reference: jobs, smaller objects, refusals, layers, managed groups."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.clustergroup.groups import HUB, application, made, names, of, one, values

from syncline.clustergroup.acm import render as acm
from syncline.clustergroup.errors import ValuesRefused
from syncline.clustergroup.naming import too_long
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj, dig

JOBS = [{"name": "a", "playbook": "a.yaml"}, {"name": "b", "playbook": "b.yaml", "timeout": 5}]


def _pod(found: list[Obj], name: str) -> Obj:
    return dict(one(found, "CronJob", name)["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def _steps(found: list[Obj], name: str = "imperative-cronjob") -> list[str]:
    return [n["name"] for n in _pod(found, name)["initContainers"]]


def test_b55_jobs_run_one_after_the_other() -> None:
    found = made(imperative={"jobs": JOBS, "extraPlaybookArgs": ["--diff"]})
    assert _steps(found) == ["fetch-ca", "git-init", "a", "b"]
    commands = [n["command"] for n in _pod(found, "imperative-cronjob")["initContainers"][2:]]
    assert [n[:2] for n in commands] == [["timeout", "600"], ["timeout", "5"]]
    assert commands[0][-2:] == ["--diff", "a.yaml"]


def test_b56_ansibles_development_mode_comes_before_the_first_job() -> None:
    given = {"jobs": JOBS, "ansibleDevMode": {"enabled": True}}
    options = {"options": {"autoApproveManualInstallPlans": True}}
    found = made({"hubClusterDomain": HUB, **options}, imperative=given)
    for name in ("imperative-cronjob", "unsealvault-cronjob", "auto-approve-installplans-cronjob"):
        steps = _steps(found, name)
        assert steps[:3] == ["fetch-ca", "git-init", "ansible-dev-mode"], name
    assert _steps(found)[3:] == ["a", "b"]


@pytest.mark.parametrize(("revision", "option"), [("HEAD", ""), ("main", " --branch main")])
def test_b57_the_default_branch_is_cloned_without_its_name(revision: str, option: str) -> None:
    """The shell runs as it is, with programs that only say what they are asked for."""
    found = made({"targetRevision": revision}, imperative={"jobs": JOBS})
    shell, flag, script = _pod(found, "imperative-cronjob")["initContainers"][1]["command"]
    programs = 'oc() { false; }; mkdir() { :; }; chmod() { :; }; git() { echo "git $*"; };\n'
    ran = subprocess.run(["bash", flag, programs + script], capture_output=True, text=True, timeout=60)
    assert (shell, flag) == ("sh", "-c")
    assert ran.stdout == f"git clone --recurse-submodules --single-branch{option} --depth 1 --  /git/repo\n"


def test_b58_a_scheduler_is_there_if_its_key_is() -> None:
    assert of(made(), "Scheduler") == []
    found = one(made(scheduler={}), "Scheduler")
    assert found["metadata"] == {
        "name": "cluster",
        "annotations": {"argocd.argoproj.io/sync-options": "Prune=false,Delete=false"},
    }


def test_b59_a_catalogue_is_named_after_its_image() -> None:
    found = one(made(indexImages=[{"image": "registry/rh-osbs/iib:1"}]), "CatalogSource")
    assert found["metadata"] == {"name": "rh-osbs-iib", "namespace": "openshift-marketplace"}


def test_b60_plumbing_has_no_workloads() -> None:
    group = {"nodes": [{"n1": {"labels": {"a": "b"}}}], "scheduler": {}}
    full = made({"hubClusterDomain": HUB}, **group)
    plumbing = made({"hubClusterDomain": HUB}, {"enabled": "plumbing"}, **group)
    for kind in ("Node", "Scheduler", "CronJob"):
        assert of(full, kind) and not of(plumbing, kind), kind
    assert "imperative" in names(full, "Namespace")
    assert "imperative" not in names(plumbing, "Namespace")
    assert "vault-pod-exec" not in names(plumbing, "Role")


def test_b61_an_unknown_key_of_the_group_is_refused() -> None:
    with pytest.raises(ValuesRefused, match="additional properties 'applicationSets' not allowed"):
        made(applicationSets={})


@pytest.mark.parametrize("form", [dict, list])
def test_b62_a_later_file_merges_maps_and_replaces_lists(form: type) -> None:
    first: Any = {"name": "web", "path": "p", "namespace": "web"}
    later: Any = {"name": "web", "path": "q"} if form is list else {"path": "q"}
    layers = [values(applications={"web": first} if form is dict else [first])]
    layers.append({"clusterGroup": {"applications": {"web": later} if form is dict else [later]}})
    spec = one(render(values_of(layers)), "Application")["spec"]
    kept = "web" if form is dict else "shop-hub"
    assert (spec["source"]["path"], spec["destination"]["namespace"]) == ("q", kept)


def test_b63_managed_groups_are_the_acm_charts() -> None:
    managed = {"one": {"name": "east"}, "two": {"name": "west", "acmlabels": [{"name": "site", "value": "w"}]}}
    assert made(managedClusterGroups=managed) != []
    assert names(made(managedClusterGroups=managed), "Policy") == []
    found = acm.render(acm.values_of([values(managedClusterGroups=managed)]))
    for group, labels in (("east", {"clusterGroup": "east"}), ("west", {"site": "w"})):
        assert of(found, "Policy", f"{group}-clustergroup-policy")
        (bound,) = of(found, "PlacementBinding", f"{group}-placement-binding")
        assert bound["placementRef"]["name"] == f"{group}-placement"
        (placed,) = of(found, "Placement", f"{group}-placement")
        selector = dig(placed, "spec", "predicates")[0]["requiredClusterSelector"]["labelSelector"]
        assert selector["matchLabels"] == labels
        assert selector["matchExpressions"] == [{"key": "local-cluster", "operator": "NotIn", "values": ["true"]}]


@pytest.mark.parametrize(("group", "pattern", "fits"), [(20, 7, False), (20, 6, True), (19, 8, True)])
def test_b64_names_together_have_at_most_46_letters(group: int, pattern: int, fits: bool) -> None:
    assert (too_long("p" * pattern, "g" * group) == "") is fits


def test_every_behaviour_of_the_reference_has_a_test() -> None:
    here = Path(__file__).parent
    found = {int(n) for one in here.glob("test_*.py") for n in re.findall(r"^def test_b(\d\d)_", one.read_text(), re.M)}
    assert found == set(range(1, 65))


# What drawn values showed beside Helm, and no recording has.


@pytest.mark.parametrize(
    ("shared", "kind", "name", "path", "wanted"),
    [
        ({"pattern": None}, "ArgoCD", "hub-gitops", ("metadata", "namespace"), "<nil>-hub"),
        ({"pattern": "a'b"}, "Namespace", "imperative", ("metadata", "labels", "name"), "refused"),
    ],
    ids=["no pattern", "a quote in a name"],
)
def test_odd_names_are_helms(shared: Obj, kind: str, name: str, path: tuple[str, ...], wanted: str) -> None:
    if wanted == "refused":
        with pytest.raises(ValueError, match="breaks the YAML"):
            made(shared)
        return
    assert dig(one(made(shared), kind, name), *path) == wanted


@pytest.mark.parametrize(
    ("shared", "top", "group", "said"),
    [
        ({}, {"enabled": 1}, {}, "incompatible types for comparison: 1 and 'plumbing'"),
        ({}, {"vp-rbac": None}, {}, "the values of vp-rbac are a map, found None"),
        ({}, {}, {"applications": {"a": {"name": "a", "chart": 2}}}, "incompatible types for comparison"),
        ({}, {}, {"applications": {"a": {"name": "a", "fileParameters": [1]}}}, "cannot read name: it is '1'"),
    ],
    ids=["enabled", "a dependency without values", "a chart", "file parameters"],
)
def test_values_of_another_type_are_refused(shared: Obj, top: Obj, group: Obj, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        made(shared, top, **group)


def test_a_dependency_keeps_a_global_default_that_null_takes_away() -> None:
    from syncline.clustergroup.defaults import with_defaults

    found = with_defaults(values({"targetRevision": None, "secretLoader": True}))
    assert "targetRevision" not in found["global"]
    assert found["vp-rbac"]["global"]["targetRevision"] == "main"
    assert found["vp-rbac"]["global"]["secretLoader"] == {"disabled": False}


@pytest.mark.parametrize(
    ("managed", "said"),
    [
        ({"one": None}, "cannot read name: nil pointer"),
        ({"one": {"name": "e", "acmlabels": 4.16}}, "len of 4.16"),
        ({"one": {"name": "e", "helmOverrides": 0}}, "range can't iterate over 0"),
        ({"one": {"name": "e", "clusterPools": {"p": {"name": "p"}}}}, "cannot read aws: nil pointer"),
        ({"one": {"clusterDeployments": {"d": {"name": "d", "platform": {}}}}}, "group name is empty"),
    ],
    ids=["no group", "labels that are none", "overrides that are none", "no platform", "no name"],
)
def test_groups_that_cannot_be_managed_are_refused(managed: Obj, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        acm.render(acm.values_of([values(managedClusterGroups=managed)]))


def test_an_application_is_what_the_reference_says_beside_its_sources() -> None:
    found = application(annotations={"a": 1})
    assert found["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io/foreground"]
    assert found["metadata"]["labels"] == {"validatedpatterns.io/pattern": "shop"}
    assert found["metadata"]["annotations"] == {"a": "1"}

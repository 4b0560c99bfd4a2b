"""Works that are too large for one object: split where we make them, refused with the way out where nothing helps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet.test_pull_controllers import APPS, WORKS, application
from tests.fleet.world import Fleet, config_map

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.assembly.inspection.pulled import pulled
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.setreport import report_obj
from syncline.explain.fleet.applications import Standing, application_state
from syncline.explain.fleet.carried import explain_carried
from syncline.explain.fleet.setreport import application_report
from syncline.explain.view import View
from syncline.fleet.hub.works.admission import MAX_BYTES, WorkRefused, check_manifests, manifest_size
from syncline.fleet.hub.works.splitting import TooLarge, grouped, split_work
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.evidence import Judged, facts_of, judge
from syncline.kube.objects import Obj, name_of

PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/{}/appprojects"
DECISIONS = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/argocd/placementdecisions"


@given(st.lists(st.integers(0, 900), min_size=1, max_size=12), st.integers(300, 2000))
@settings(max_examples=60, deadline=None)
def test_splitting_loses_nothing_keeps_the_order_and_admission_takes_each_part(sizes: list[int], limit: int) -> None:
    manifests = [config_map(f"m{number}", text="x" * size) for number, size in enumerate(sizes)]
    work = {"metadata": {"name": "w", "namespace": "c1"}, "spec": {"workload": {"manifests": manifests}}}
    if max(map(manifest_size, manifests)) > limit:
        with pytest.raises(TooLarge):
            split_work(work, limit, shared={})
        return
    made = split_work(work, limit, shared={})
    assert [one for each in made for one in each["spec"]["workload"]["manifests"]] == manifests
    assert [name_of(one) for one in made] == [*(f"w-part-{n}" for n in range(1, len(made))), "w"]
    for one in made:
        check_manifests(one, limit)
    fits = sum(map(manifest_size, manifests)) <= limit
    assert (made == (work,)) is fits


def test_b68_a_manifest_of_exactly_the_limit_is_a_group_of_its_own() -> None:
    bare = config_map("m", text="")
    full = config_map("m", text="x" * (MAX_BYTES - len(json.dumps(bare, separators=(",", ":"))) - 4))
    assert manifest_size(full) == MAX_BYTES
    assert [len(one) for one in grouped([bare, full, bare], MAX_BYTES)] == [1, 1, 1]
    with pytest.raises(WorkRefused):
        check_manifests({"spec": {"workload": {"manifests": [bare, full]}}})


def _fleet(variant: Variant) -> Fleet:
    chosen = PullSettings(variant)
    fleet = Fleet()
    fleet.start_role(pull_role(chosen, objects=tuple(pull_objects(chosen))))
    fleet.add("c1")
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}
    fleet.hub.send("POST", DECISIONS, {**kind, "metadata": {"name": "d", "namespace": "argocd"}})
    status = {"status": {"decisions": [{"clusterName": "c1", "reason": ""}]}}
    fleet.hub.send("PATCH", f"{DECISIONS}/d/status", status)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
    fleet.members["c1"].send("POST", "/api/v1/namespaces", namespace)
    for crd in pull_objects(chosen):
        if crd["kind"] == "CustomResourceDefinition" and crd["spec"]["group"] == "argoproj.io":
            fleet.members["c1"].send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    fleet.time.advance(1)
    return fleet


def _project(size: int) -> Obj:
    metadata = {"name": "default", "namespace": "argocd"}
    spec = {"description": "x" * 200, "sourceRepos": ["https://git.test/" + "a" * 80] * (size // 100)}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


def _large(size: int) -> Obj:
    made = application("web", metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    made["spec"]["source"]["helm"] = {"values": "a: " + "x" * size}
    return made


def _manifests(fleet: Fleet) -> dict[str, list[str]]:
    works = fleet.hub.get(WORKS.format("c1"))["items"]
    return {
        name_of(one).removeprefix("web-")[5:]: [each["kind"] for each in one["spec"]["workload"]["manifests"]]
        for one in works
    }


def test_a_project_beside_a_large_application_travels_in_a_part_and_both_go_together() -> None:
    fleet = _fleet(Variant.ACM)
    fleet.hub.send("POST", PROJECTS.format("argocd"), _project(1000))
    fleet.hub.send("POST", APPS.format("argocd"), _large(1000))
    fleet.time.advance(60)
    assert _manifests(fleet) == {"": ["Namespace", "AppProject", "Application"]}
    spoke = fleet.members["c1"]
    project, there = f"{PROJECTS.format('argocd')}/default", f"{APPS.format('argocd')}/web"
    before = [spoke.get(path)["metadata"]["uid"] for path in (project, there)]

    fleet.hub.send("PATCH", project, _project(300_000))
    fleet.hub.send("PATCH", there, {"spec": _large(300_000)["spec"]})
    fleet.time.advance(120)
    assert _manifests(fleet) == {"": ["Application"], "-part-1": ["Namespace", "AppProject"]}
    assert [spoke.get(path)["metadata"]["uid"] for path in (project, there)] == before, "nothing was made again"
    assert len(spoke.get(project)["spec"]["sourceRepos"]) == 3000
    written = [one["metadata"]["resourceVersion"] for one in fleet.hub.get(WORKS.format("c1"))["items"]]
    fleet.time.advance(3600)
    assert [one["metadata"]["resourceVersion"] for one in fleet.hub.get(WORKS.format("c1"))["items"]] == written

    fleet.hub.send("PATCH", there, {"spec": _large(10)["spec"]})
    fleet.time.advance(120)
    assert _manifests(fleet) == {"": ["Namespace", "AppProject", "Application"]}
    assert [spoke.get(path)["metadata"]["uid"] for path in (project, there)] == before

    fleet.hub.send("PATCH", there, {"spec": _large(300_000)["spec"]})
    fleet.time.advance(120)
    assert len(_manifests(fleet)) == 2
    fleet.hub.send("DELETE", there)
    fleet.time.advance(120)
    assert fleet.hub.absent(there)
    spoke.send("PATCH", there, {"metadata": {"finalizers": None}})  # as the GitOps controllers, which do not run here
    fleet.time.advance(120)
    assert _manifests(fleet) == {}
    assert not spoke.absent(project), "Namespace and AppProject stay, as the rules of the work say"


@pytest.mark.parametrize("variant", list(Variant))
def test_an_application_that_fits_into_no_work_says_so_and_its_cluster_keeps_the_one_it_has(variant: Variant) -> None:
    fleet = _fleet(variant)
    fleet.hub.send("POST", PROJECTS.format("argocd"), _project(100))
    there = f"{APPS.format('argocd')}/web"
    fleet.hub.send("POST", APPS.format("argocd"), _large(10))
    fleet.time.advance(60)
    fleet.hub.send("PATCH", there, {"spec": _large(600_000)["spec"]})
    fleet.time.advance(60)
    (said,) = [one for one in fleet.hub.get(there)["status"]["conditions"] if one["type"] == "CarryError"]
    assert said["message"].startswith("Application argocd/web is 600")
    assert "at most 512000; one object cannot be split: keep long values in the repository" in said["message"]
    assert len(fleet.members["c1"].get(there)["spec"]["source"]["helm"]["values"]) == 13
    fleet.hub.send("PATCH", there, {"spec": _large(20)["spec"]})
    fleet.time.advance(60)
    conditions = fleet.hub.get(there)["status"].get("conditions") or []
    assert [one for one in conditions if one["type"] == "CarryError"] == []
    assert len(fleet.members["c1"].get(there)["spec"]["source"]["helm"]["values"]) == 23


def _refusing(kind: str, text: str) -> list[tuple[str, Obj]]:
    """Return what makes a cluster refuse to change objects of a kind."""
    group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [kind]}
    made: Obj = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "closed"}}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": text}]}
    bound = {"policyName": "closed", "validationActions": ["Deny"]}
    return [
        (f"{group}ies", {**made, "kind": "ValidatingAdmissionPolicy", "spec": spec}),
        (f"{group}ybindings", {**made, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}),
    ]


def test_what_fails_in_a_part_is_said_of_the_application_under_the_name_of_its_work() -> None:
    fleet = _fleet(Variant.ACM)
    spoke = fleet.members["c1"]
    for path, body in _refusing("appprojects", "projects are frozen"):
        spoke.send("POST", path, body)
    fleet.hub.send("POST", PROJECTS.format("argocd"), _project(300_000))
    fleet.hub.send("POST", APPS.format("argocd"), _large(300_000))
    fleet.time.advance(60)
    assert _manifests(fleet) == {"": ["Application"], "-part-1": ["Namespace", "AppProject"]}
    works = {name_of(one): one for one in fleet.hub.get(WORKS.format("c1"))["items"]}
    main, part = sorted(works, key=len)
    view = View(pulled(fleet.hub.admin, {}), fleet.clock.now())
    app = fleet.hub.get(f"{APPS.format('argocd')}/web")
    lines = describe_cause(explain_carried(view, app).cause, view.now).splitlines()
    (named,) = [one for one in lines if one.strip().startswith(f"ManifestWork c1/{part} NotApplied")]
    below = lines[lines.index(named) + 1]
    assert "AppProject argocd/default" in below and "projects are frozen" in below
    state = application_state(view, app)
    assert state.standing is Standing.MISSING and state.problem is not None
    assert state.problem.message == f"1 of 1 applied, 1 of 1 available; not so {part}"
    (row,) = [one for one in report_obj(application_report(view, app, "argocd"))["clusters"] if one["cluster"] == "c1"]
    assert part in json.dumps(row["problem"]) and "projects are frozen" in json.dumps(row["problem"])
    judged = judge(facts_of(works[main], None, [works[part]]), "r", None, ())
    assert judged.failed.startswith(f"its agent cannot apply the work: part {part}: ")


def test_a_release_is_not_proved_before_each_part_is_applied() -> None:
    fleet = _fleet(Variant.ACM)
    fleet.stop_agent("c1")
    fleet.hub.send("POST", PROJECTS.format("argocd"), _project(300_000))
    fleet.hub.send("POST", APPS.format("argocd"), _large(300_000))
    fleet.time.advance(5)
    part, main = sorted(fleet.hub.get(WORKS.format("c1"))["items"], key=lambda one: -len(name_of(one)))
    reported = {"report": {"release": "r", "sync": {"status": "Synced"}, "health": {"status": "Healthy"}}}
    assert judge(facts_of(main, reported), "r", None, ()).holds
    why = f"its agent has not applied part {name_of(part)} of the work yet"
    assert judge(facts_of(main, reported, [part]), "r", None, ()) == Judged(why=why)

"""Recorded steps of OLM's state machines (``conformance/patterns/operators.jsonl``, kind ``olm``).

The functions under test take what upstream's functions read as arguments; this file reads it from the cases. Known
differences are in ``known_operators.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import Case, cases_of, known

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.patterns.operators.granted import grants_of
from syncline.patterns.operators.groups import Intersection, fails_forward
from syncline.patterns.operators.installmodes import mode_set, unsupported
from syncline.patterns.operators.installplans import Executed, check, transition
from syncline.patterns.operators.names import MANAGED
from syncline.patterns.operators.phases import Around, Moved, step
from syncline.patterns.operators.requirements import Needs
from syncline.patterns.operators.resolving import (
    Decided,
    Resolved,
    decide,
    planned,
    settle,
    unplanned,
    waits_for_plan,
)
from syncline.patterns.operators.subscriptions import check_plan, plan_not_found, update_health

KNOWN = known(Path(__file__).with_name("known_operators.json"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def of(family: str) -> list[Any]:
    """The cases of a family that are not known to differ."""
    every = [one for one in cases_of("patterns", "operators") if one["family"] == family]
    marks = {name: pytest.mark.xfail(reason=why, strict=True) for name, why in KNOWN.items()}
    return [pytest.param(one, id=one["id"], marks=[marks[one["id"]]] if one["id"] in marks else []) for one in every]


def plain(value: Any) -> Any:
    """Without what Go leaves out: nulls, empty lists and maps, and empty texts."""
    if isinstance(value, dict):
        made = {key: plain(one) for key, one in value.items()}
        return {key: one for key, one in made.items() if one not in (None, "", [], {})}
    return [plain(one) for one in value] if isinstance(value, list) else value


def at(case: Case) -> datetime:
    return parse_time(case["input"]["now"]) if "now" in case["input"] else NOW


def sub(case: Case) -> tuple[Obj, Obj]:
    before = case["input"]["before"]
    return before.get("spec") or {}, before.get("status") or {}


@pytest.mark.parametrize("case", of("subscription-catalog-health"))
def test_a_subscription_says_how_its_catalogues_are(case: Case) -> None:
    spec, status = sub(case)
    after = update_health(spec, status, case["input"].get("catalogHealth") or [], at(case))
    assert plain(after) == plain(case["expect"]["after"]["status"])
    assert (after != status) == case["expect"]["updated"]


@pytest.mark.parametrize("case", of("subscription-installplan-missing"))
def test_a_subscription_says_that_its_install_plan_is_missing(case: Case) -> None:
    assert plain(plan_not_found(sub(case)[1], at(case))) == plain(case["expect"]["after"]["status"])


@pytest.mark.parametrize("case", of("subscription-installplan-status"))
def test_a_subscription_says_what_became_of_its_install_plan(case: Case) -> None:
    after = check_plan(sub(case)[1], case["input"]["installPlanStatus"], at(case))
    assert plain(after) == plain(case["expect"]["after"]["status"])


def kind_of(obj: Obj) -> str:
    """The kind of an object; the recordings leave it out where the type says it."""
    if "kind" in obj:
        return str(obj["kind"])
    marks = {
        "template": "Deployment",
        "install": "ClusterServiceVersion",
        "clusterServiceVersionNames": "InstallPlan",
        "source": "Subscription",
    }
    found = next((kind for key, kind in marks.items() if key in (obj.get("spec") or {})), "")
    if not found and "roleRef" in obj:
        found = "RoleBinding" if namespace_of(obj) else "ClusterRoleBinding"
    if not found and "rules" in obj:
        found = "Role" if namespace_of(obj) else "ClusterRole"
    if not found and "namespaces" in (obj.get("status") or {}):
        found = "OperatorGroup"
    return found or "ServiceAccount"


def by_name(objects: Iterable[Obj], kind: str) -> dict[str, Obj]:
    return {name_of(one): one for one in objects if kind_of(one) == kind}


def resolved(given: Mapping[str, Any]) -> Resolved:
    error = str(given.get("unpackError") or "")
    return Resolved(
        tuple(given.get("resolvedSteps") or ()),
        tuple(given.get("resolvedSubscriptions") or ()),
        tuple(given.get("bundleLookups") or ()),
        str(given.get("resolveError") or ""),
        error,
        fatal="fatal" in error,
    )


def worked(case: Case) -> tuple[list[Obj], list[Obj], str]:
    """Subscriptions, InstallPlans and error after a pass over the namespace."""
    given, now = case["input"], at(case)
    subscriptions = list(by_name(given["existing"], "Subscription").values())
    csvs, plans = by_name(given["existing"], "ClusterServiceVersion"), by_name(given["existing"], "InstallPlan")
    groups = by_name(given["existing"], "OperatorGroup").values()
    settled, changed = settle(subscriptions, csvs, plans, any(map(fails_forward, groups)), now)
    if changed or all(map(waits_for_plan, settled)):
        return list(settled), list(plans.values()), ""
    decided: Decided = decide(settled, resolved(given), list(plans.values()), now)
    if decided.plan is not None:
        refused = next((c for c in ("ensureinstallplanfailed",) if case["id"].endswith(c)), "")
        if refused:
            decided = unplanned(settled, "fake install plan create error", now)
        else:
            created = {**decided.plan, "metadata": {**decided.plan["metadata"], "name": "", "uid": ""}}
            decided = planned(decided, created, now)
            return list(decided.subscriptions), [*plans.values(), created], decided.error
    return list(decided.subscriptions), list(plans.values()), decided.error


@pytest.mark.parametrize("case", [*of("subscription-sync"), *of("subscription-resolve")])
def test_the_subscriptions_of_a_namespace_get_what_was_resolved(case: Case) -> None:
    subscriptions, plans, error = worked(case)
    after = case["expect"]["after"]
    assert plain(subscriptions) == plain(after["subscriptions"])
    assert error == case["expect"]["error"]
    for plan, expected in zip(plans, after.get("installPlans") or [], strict=True):
        expected["metadata"].pop("selfLink", None)
        plan = {key: value for key, value in plan.items() if key not in ("kind", "apiVersion")}
        assert plain(plan) == plain(expected)


def untimed(value: Any) -> Any:
    times = ("lastUpdateTime", "lastTransitionTime")
    if isinstance(value, dict):
        return {key: untimed(one) for key, one in value.items() if key not in times}
    return [untimed(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", of("installplan-sync"))
def test_an_install_plan_says_why_it_cannot_be_worked_on(case: Case) -> None:
    before = case["input"]["before"]
    checked = check(before, case["input"]["existing"], NOW)
    after = {**before, "status": checked.status or before["status"]}
    assert untimed(plain(after)) == untimed(plain(case["expect"]["after"]))
    assert checked.error == case["expect"]["error"]


@pytest.mark.parametrize("case", of("installplan-transition"))
def test_an_install_plan_moves_on(case: Case) -> None:
    given = case["input"]
    executed = Executed(given["executeError"], forbidden="forbidden" in given["executeError"])
    status, error = transition(given["before"], executed, at(case), timedelta(seconds=given["timeoutSeconds"]))
    assert untimed(plain(status)) == untimed(plain(case["expect"]["after"]["status"]))
    assert error == case["expect"]["error"]


def faked(case: Case) -> Any:
    """The answer of upstream's stub for intersecting groups, which the name of the case gives."""
    for word, found in (
        ("addapis", Intersection.ADD),
        ("removeapis", Intersection.REMOVE),
        ("noapiconflict", Intersection.NONE),
        ("conflict", Intersection.CONFLICT),
    ):
        if case["id"].endswith(word):
            return lambda *_: found
    raise AssertionError(case["id"])


def passed(case: Case) -> tuple[dict[str, Moved], list[str]]:
    """One step for each ClusterServiceVersion in their order; what is deleted is gone for the later ones."""
    given = case["input"]
    csvs = {name_of(one): one for one in given["csvs"]}
    objects = given.get("objs") or []
    managed = [one for one in objects if labels_of(one).get(MANAGED) == "true"]
    services = [*(given.get("apis") or ())]
    needs = Needs(
        definitions={name_of(one): one for one in given.get("crds") or ()},
        accounts=by_name(objects, "ServiceAccount"),
        api_services={name_of(one): one for one in services},
        grants=grants_of({**one, "kind": kind_of(one)} for one in objects),
    )
    around = Around(
        csvs,
        [one for one in given.get("clientObjs") or () if kind_of(one) == "OperatorGroup"],
        by_name(managed, "Deployment"),
        {name_of(one): one for one in given.get("clientObjs") or () if kind_of(one) == "OperatorCondition"},
        needs,
        **({"compare": faked(case)} if given.get("fakeAPIReconciler") else {}),
    )
    moved: dict[str, Moved] = {}
    for one in given["csvs"]:
        found = step(one, around, NOW)
        moved[name_of(one)] = found
        if found.delete:
            del csvs[name_of(one)]
        else:
            csvs[name_of(one)] = {**one, "status": found.status}
    return moved, [name for name, one in moved.items() if one.delete]


@pytest.mark.parametrize("case", of("csv-transition"))
def test_a_service_version_moves_on(case: Case) -> None:
    moved, deleted = passed(case)
    after = case["expect"]["after"] or {}
    assert sorted(set(moved) - set(deleted)) == sorted(after)
    for name, expected in after.items():
        status = moved[name].status
        read = ("phase", "reason", "message")
        assert [status.get(key) or "" for key in read] == [expected.get(key) or "" for key in read], name
        needed = [(one["kind"], one["name"], one["status"]) for one in expected.get("requirementStatus") or ()]
        found = [(one["kind"], one["name"], one["status"]) for one in dig(status, "requirementStatus", default=())]
        assert sorted(found) == sorted(needed)
    assert {name: one.error for name, one in moved.items() if one.error} == (case["expect"]["errors"] or {})


@pytest.mark.parametrize("case", of("csv-installmode"))
def test_an_operator_says_which_namespaces_it_cannot_watch(case: Case) -> None:
    given = case["input"]
    modes = mode_set(given["installModes"])
    assert unsupported(modes, given["operatorNamespace"], given["targetNamespaces"] or ()) == case["expect"]["error"]


def csv(name: str, phase: str, **spec: Any) -> Obj:
    marks = {"olm.operatorGroup": "group", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "ns"}
    made = {"install": {"strategy": "deployment", "spec": {"deployments": []}}, **spec}
    modes = [{"type": "OwnNamespace", "supported": True}]
    metadata = {"name": name, "namespace": "ns", "uid": name, "annotations": marks}
    return {"metadata": metadata, "spec": {"installModes": modes, **made}, "status": {"phase": phase}}


def moved_to(*csvs: Obj, provided: str = "", **around: Any) -> tuple[str, str, str]:
    """Phase, reason and error of the last one after a step."""
    annotations = {"olm.providedAPIs": provided}
    group = {"metadata": {"name": "group", "namespace": "ns", "annotations": annotations}}
    group["status"] = {"namespaces": ["ns"]}
    found = step(csvs[-1], Around({name_of(one): one for one in csvs}, [group], **around), NOW)
    return str(found.status.get("phase")), str(found.status.get("reason") or ""), found.error


DEFINED = {"customresourcedefinitions": {"owned": [{"name": "c1.g1", "version": "v1", "kind": "c1"}]}}
ESTABLISHED: Obj = {
    "metadata": {"name": "c1.g1"},
    "spec": {"versions": [{"name": "v1", "served": True}]},
    "status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Established", "NamesAccepted")]},
}
HAS = Needs(definitions={"c1.g1": ESTABLISHED})


def test_a_definition_of_another_operator_is_a_conflict() -> None:
    """Read, not recorded: ``ErrCRDOwnerConflict``."""
    found = moved_to(csv("a", "Succeeded", **DEFINED), csv("b", "Pending", **DEFINED), provided="c1.v1.g1", needs=HAS)
    assert found == ("Failed", "OwnerConflict", "conflicting CRD owner in namespace")


def test_an_api_service_of_another_operator_is_a_conflict() -> None:
    """Read, not recorded: ``ErrAPIServiceOwnerConflict``."""
    serves = {
        "apiservicedefinitions": {"owned": [{"group": "a1", "version": "v1", "kind": "k", "deploymentName": "d"}]}
    }
    serves |= {"install": {"strategy": "deployment", "spec": {"deployments": [{"name": "d"}]}}}
    labels = {"olm.owner": "a", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ns"}
    needs = Needs(api_services={"v1.a1": {"metadata": {"name": "v1.a1", "labels": labels}}})
    found = moved_to(csv("a", "Succeeded", **serves), csv("b", "Pending", **serves), provided="k.v1.a1", needs=needs)
    assert found == ("Failed", "OwnerConflict", "unable to adopt APIService")


def test_a_rule_that_means_nothing_fails_the_strategy() -> None:
    """Read, not recorded: ``ruleValid``."""
    rule = {"verbs": ["*"], "resources": ["*"], "nonResourceURLs": ["/osb"]}
    permissions = [{"serviceAccountName": "sa", "rules": [rule]}]
    install = {"strategy": "deployment", "spec": {"deployments": [], "clusterPermissions": permissions}}
    found = moved_to(csv("a", "Pending", install=install), needs=Needs(accounts={"sa": {"metadata": {"name": "sa"}}}))
    assert found == ("Failed", "InvalidInstallStrategy", "")


def test_bundles_that_cannot_be_fetched_leave_the_subscription_as_it_is() -> None:
    """Read, not recorded: an unpack error that is not fatal is only tried again."""
    one = {"metadata": {"name": "sub", "namespace": "ns"}, "spec": {}, "status": {}}
    decided = decide([one], Resolved(lookups=({},), unpack_error="fake unpack error"), [], NOW)
    assert decided.subscriptions == (one,)
    assert decided.error == "bundle unpacking failed with an error: fake unpack error"

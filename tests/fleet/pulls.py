"""Runs of the recorded cases of the pull model over an API that is a table of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from tests.fleet.recordings import NOW

from syncline.control.plan import Create, Delete, Patch, Plan, Replace, Retry, SetStatus
from syncline.fleet.pull import names
from syncline.fleet.pull.clusters import plan_cluster
from syncline.fleet.pull.gitops import plan_gitops
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.propagation import AppObserved, plan_app, plan_cleanup, plan_gone, plan_read_only
from syncline.fleet.pull.report import ReportsObserved, collected_of, plan_reports
from syncline.fleet.pull.settings import NAME as SETTINGS
from syncline.fleet.pull.settings import defaults, is_disabled
from syncline.fleet.pull.status import plan_report_status, plan_work_status
from syncline.kube.objects import Obj, annotations_of, is_terminating, labels_of, name_of, namespace_of
from syncline.kube.patching.patches import json_merge_patch

OPERATOR = "open-cluster-management"
SHOWN = {
    "Application",
    "ManifestWork",
    "Secret",
    "ConfigMap",
    "MulticlusterApplicationSetReport",
    "GitOpsCluster",
}
"""Kinds whose objects a case shows afterwards."""


class Table:
    """The objects of a case, and the writes of its current round."""

    def __init__(self, objects: Iterable[Obj]) -> None:
        self.objects = {(one["kind"], namespace_of(one), name_of(one)): deepcopy(one) for one in objects}
        self.writes: list[Obj] = []

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self.objects.get((kind, namespace, name))

    def of(self, kind: str, namespace: str | None = None) -> list[Obj]:
        found = sorted(key for key in self.objects if key[0] == kind and namespace in (None, key[1]))
        return [self.objects[key] for key in found]

    def carry_out(self, plan: Plan) -> None:
        for action in plan.actions:
            self._write(action)

    def _write(self, action: Any) -> None:
        key = action.target.kind, action.target.namespace, action.target.name
        match action:
            case Create(obj=obj):
                assert key not in self.objects
                self.objects[key], verb = deepcopy(obj), "create"
            case Replace(obj=obj):
                self.objects[key], verb = deepcopy(obj), "update"
            case Patch(body=body):
                self.objects[key], verb = json_merge_patch(self.objects[key], body), "update"
            case SetStatus(old=old, new=new):
                assert (self.objects[key].get("status") or {}) == old
                self.objects[key], verb = {**self.objects[key], "status": deepcopy(new)}, "update"
            case Delete():
                verb = "delete"
                del self.objects[key]
            case _:
                raise AssertionError(action)
        after = self.objects.get(key)
        if after is not None and is_terminating(after) and not after["metadata"].get("finalizers"):
            del self.objects[key]
        if key[2] != SETTINGS and not (key[0] == "GitOpsCluster" and isinstance(action, SetStatus)):
            self.writes.append({"verb": verb, "kind": key[0], "name": key[2]})


Step = Callable[[Table, Obj], Plan]


def app_step(variant: Variant) -> Step:
    def plan(table: Table, given: Obj) -> Plan:
        where = given["namespace"], given["name"]
        app = table.get("Application", *where)
        if app is None:
            return plan_gone(*where, table.of("ManifestWork")) if variant is Variant.BASIC else Plan()
        target = annotations_of(app).get(names.CLUSTER, "")
        part_of_argo = [
            one for one in table.of("Deployment") if labels_of(one).get("app.kubernetes.io/part-of") == "argocd"
        ]
        seen = AppObserved(
            app,
            table.get("ManifestWork", target, names.work_name(app)),
            table.get("ManagedCluster", "", target),
            table.of("PlacementDecision", where[0]),
            table.of("AppProject"),
            [namespace_of(one) for one in part_of_argo],
        )
        return plan_app(seen, variant)

    return plan


def basic_status(table: Table, given: Obj) -> Plan:
    work = table.get("ManifestWork", given["namespace"], given["name"])
    return Plan() if work is None else plan_work_status(work, _apps(table), NOW)


def acm_status(table: Table, given: Obj) -> Plan:
    report = table.get("MulticlusterApplicationSetReport", given["namespace"], given["name"])
    return Plan() if report is None else plan_report_status(report, _apps(table), NOW)


def _apps(table: Table) -> Callable[[str, str], Obj | None]:
    return lambda namespace, name: table.get("Application", namespace, name)


def basic_cluster(table: Table, given: Obj) -> Plan:
    name = given["name"]
    secret = table.get("Secret", "argocd", f"{name}-secret")
    return plan_cluster(name, table.get("ManagedCluster", "", name), secret, "argocd")


def report(table: Table, given: Obj) -> Plan:
    """A file is named after the set: ``NAMESPACE_NAME.yaml``."""
    files = {file.removesuffix(".yaml"): text for file, text in (given.get("files") or {}).items()}
    split = {tuple(name.split("_", 1)): text for name, text in files.items() if "_" in name}
    sets = frozenset((namespace_of(one), name_of(one)) for one in table.of("ApplicationSet"))
    works, reports = table.of("ManifestWork"), table.of("MulticlusterApplicationSetReport")
    collected = {(key[0], key[1]): collected_of(text) for key, text in split.items()}
    return plan_reports(ReportsObserved(sets, works, reports, collected))


STEPS: dict[str, Step] = {
    "basic-app": app_step(Variant.BASIC),
    "acm-app": app_step(Variant.ACM),
    "basic-status": basic_status,
    "acm-status": acm_status,
    "basic-cleanup": lambda table, _: plan_cleanup(table.of("ManifestWork"), table.of("Application")),
    "acm-sweep": lambda table, _: plan_read_only(table.of("ManifestWork")),
    "basic-cluster": basic_cluster,
    "report": report,
}


def gitops(table: Table) -> Obj:
    def listed(kind: str, namespace: str) -> list[Obj]:
        return table.of(kind, namespace or None)

    found = plan_gitops(table.of("GitOpsCluster"), table.get, listed, NOW)
    table.carry_out(Plan((found.actions,), status=found.status))
    after = found.recheck.total_seconds()
    return {"error": found.error or None, "requeueAfter": after, "writes": table.writes}


def run(kind: str, given: Obj) -> Obj:
    """Carry out the rounds of a case; the answer is in the shape of its ``expect``."""
    table, rounds = Table(given.get("objects") or ()), []
    for _ in range(given.get("times") or 1):
        table.writes = []
        if kind == "gitops":
            rounds.append(gitops(table))
            continue
        plan = _step(kind, table, given)
        table.carry_out(plan)
        error = plan.outcome.error if isinstance(plan.outcome, Retry) else None
        rounds.append({"error": error, "requeueAfter": 0, "writes": table.writes})
    shown = [one for one in table.objects.values() if one["kind"] in SHOWN]
    return {"rounds": rounds, "objects": shown}


def _step(kind: str, table: Table, given: Obj) -> Plan:
    if kind in ("acm-app", "acm-status"):
        settings = table.get("ConfigMap", OPERATOR, SETTINGS)
        if settings is None:
            table.carry_out(Plan(((defaults(OPERATOR),),)))
        elif is_disabled(settings):
            return Plan()
    return STEPS[kind](table, given)


def predicate(given: Obj) -> Obj:
    obj = given["object"]
    if obj["kind"] == "ManifestWork":
        return {"basic": names.returns_status(obj)}
    found = {"basic": names.is_carried(obj), "acm": names.is_carried(obj)}
    return {**found, "acmUpdate": names.is_changed(given["old"], obj)} if "old" in given else found


def set_hash(given: Obj) -> Obj:
    return {"error": None, "hash": names.set_hash(given["namespace"], given["name"])}

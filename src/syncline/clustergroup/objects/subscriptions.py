"""Subscriptions of operators, ClusterExtensions, and the Jobs that wait for them (reference clustergroup §5, 6)."""

from __future__ import annotations

from typing import Any

from syncline.clustergroup.defaults import SEQUENCE_IMAGE
from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.facts import Facts
from syncline.clustergroup.printing import Printer, first, is_empty, printed
from syncline.kube.objects import Obj

WHAT = "clusterGroup.subscriptions"
WAVE = "argocd.argoproj.io/sync-wave"
_EXTENSION = ("channels", "version", "upgradeConstraintPolicy", "serviceAccountName")
"""Each of them makes a ClusterExtension of a subscription."""


def subscriptions(facts: Facts) -> list[Obj]:
    """Return the objects of all subscriptions; one without a name has none."""
    out = facts.printer("core/subscriptions")
    made: list[Obj] = []
    for one in out.each(facts.group.get("subscriptions"), WHAT):
        if one is None or is_empty(out.field(one, "name", WHAT)):
            continue
        if is_empty(one.get("disabled")):
            made += _operator(out, facts, one)
        job = one.get("sequenceJob")
        if not is_empty(job) and is_empty(out.field(job, "disabled", WHAT)):
            made.append(_job(out, one, job))  # also of a disabled subscription, as upstream
    return made


def _operator(out: Printer, facts: Facts, one: Obj) -> list[Obj]:
    if not is_empty(one.get("namespaces")):
        return [_subscription(out, facts, one, where) for where in out.each(one["namespaces"], WHAT)]
    if any(not is_empty(one.get(key)) for key in _EXTENSION):
        return [_extension(out, one)]
    return [_subscription(out, facts, one, first(one.get("namespace"), "openshift-operators"))]


def _subscription(out: Printer, facts: Facts, one: Obj, where: Any) -> Obj:
    spec: Obj = {
        "name": out.plain(one["name"]),
        "source": out.plain(first(one.get("source"), "redhat-operators")),
        "sourceNamespace": out.plain(first(one.get("sourceNamespace"), "openshift-marketplace")),
    }
    if not is_empty(one.get("channel")):
        spec["channel"] = out.plain(one["channel"])
    spec["installPlanApproval"] = out.plain(
        first(one.get("installPlanApproval"), facts.options.get("installPlanApproval"))
    )
    if not is_empty(one.get("config")):
        spec["config"] = one["config"]
    if not is_empty(facts.options.get("useCSV")) or not is_empty(one.get("csv")):
        spec["startingCSV"] = out.plain(one.get("csv"))
    metadata = {"name": out.plain(one["name"]), "namespace": out.plain(where)}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {**metadata, **out.annotations(one.get("annotations"))},
        "spec": spec,
    }


def _extension(out: Printer, one: Obj) -> Obj:
    catalog: Obj = {"packageName": out.plain(one["name"])}
    if not is_empty(one.get("channels")):
        catalog["channels"] = one["channels"]
    if not is_empty(one.get("version")):
        catalog["version"] = printed(one["version"])
    catalog["upgradeConstraintPolicy"] = out.plain(first(one.get("upgradeConstraintPolicy"), "CatalogProvided"))
    spec: Obj = {"namespace": out.plain(first(one.get("namespace"), "openshift-operators"))}
    if not is_empty(one.get("serviceAccountName")):
        spec["serviceAccount"] = {"name": out.plain(one["serviceAccountName"])}
    spec["source"] = {"sourceType": "Catalog", "catalog": catalog}
    return {
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterExtension",
        "metadata": {"name": out.plain(one["name"]), **out.annotations(one.get("annotations"))},
        "spec": spec,
    }


def _job(out: Printer, one: Obj, job: Obj) -> Obj:
    annotations = one.get("annotations")
    if not isinstance(annotations, dict):
        raise RenderFailed(
            out.part,
            f"subscription {printed(one['name'])} has a sequenceJob and no annotations; give it {WAVE}",
        )
    wave = first(job.get("syncWave"), annotations.get(WAVE))
    name = out.plain(f"{printed(one['name'])}-sequencejob")
    container = {
        "name": name,
        "image": out.plain(first(job.get("image"), SEQUENCE_IMAGE)),
        "command": job["command"] if not is_empty(job.get("command")) else ["/bin/bash", "-c", waiting_script(job)],
    }
    spec = {"restartPolicy": "OnFailure", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "annotations": {
                "argocd.argoproj.io/hook": out.plain(first(job.get("hookType"), "Sync")),
                WAVE: out.quoted(wave),
            },
        },
        "spec": {"parallelism": 1, "completions": 1, "template": {"spec": spec}},
    }


def waiting_script(job: Obj) -> str:
    """Return the shell script of a Job that waits for an object."""
    kind, name, where = (printed(job.get(key)) for key in ("resourceType", "resourceName", "resourceNamespace"))
    option, place = (f" -n {where}", f" in {where}") if where else ("", "")
    return (
        f"while [ 1 ];\ndo\n  oc get {kind} {name}{option} && break\n"
        f'  echo "{kind} {name}{place} not found, waiting..."\n  sleep 5\ndone\n'
        f'echo "{kind} {name}{place} found, exiting..."\nexit 0\n'
    )

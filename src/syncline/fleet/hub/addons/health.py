"""The health of an add-on by what its works report of its Deployments and DaemonSets; pure.

Rules: ``addon-framework`` of upstream (``healthcheck_sync``, ``probe_helper``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from syncline.fleet.addons import AVAILABLE
from syncline.fleet.conditions import condition, find_condition
from syncline.fleet.hub.addons.works import deploy_prefix
from syncline.kube.objects import Obj, dig, gvk_of, name_of, namespace_of

WORKLOADS: Final = {"Deployment": "deployments", "DaemonSet": "daemonsets"}
_READY: Final = {"deployments": ("ReadyReplicas", "Replicas"), "daemonsets": ("NumberReady", "DesiredNumberScheduled")}
"""The values that say how many pods are ready, and how many there are to be."""
_KNOWN_READY, _KNOWN_WANTED = {one for one, _ in _READY.values()}, {one for _, one in _READY.values()}


def workloads_of(manifests: Iterable[Obj]) -> list[Obj]:
    """Return the Deployments and DaemonSets among manifests."""
    return [one for one in manifests if gvk_of(one).group == "apps" and one.get("kind") in WORKLOADS]


def workload_identifier(manifest: Obj) -> Obj:
    resource = WORKLOADS[str(manifest.get("kind"))]
    return {"group": "apps", "resource": resource, "namespace": namespace_of(manifest), "name": name_of(manifest)}


def reporting(manifests: Iterable[Obj], given: Sequence[Obj]) -> list[Obj]:
    """Return the ``manifestConfigs`` that make works report of workloads, joined with those of the add-on."""
    made = [
        {"resourceIdentifier": workload_identifier(one), "feedbackRules": [{"type": "WellKnownStatus"}]}
        for one in workloads_of(manifests)
    ]
    for one in given:
        at = one.get("resourceIdentifier")
        same = next((each for each in made if each["resourceIdentifier"] == at), None)
        if same is None:
            made.append(dict(one))
            continue
        rules = same.get("feedbackRules") or []
        added = [rule for rule in one.get("feedbackRules") or () if rule not in rules]
        same |= {key: value for key, value in one.items() if key != "feedbackRules"}
        same["feedbackRules"] = [*rules, *added]
    return made


def availability(addon: Obj, manifests: Iterable[Obj], works: Iterable[Obj]) -> Obj:
    """Return the condition Available of an add-on whose works were applied at least once."""
    deployed = [one for one in works if name_of(one).startswith(deploy_prefix(name_of(addon)) + "-")]
    if not deployed:
        return condition(AVAILABLE, "Unknown", "WorkNotFound", "Addon manifestWork is not found")
    reported: list[Obj] = []
    for work in deployed:
        said = find_condition(dig(work, "status", "conditions") or (), AVAILABLE)
        if said is None:
            return condition(AVAILABLE, "Unknown", "WorkNotApplied", "Addon manifestWork is not applied yet")
        if said.get("status") == "False":
            return condition(AVAILABLE, "False", "WorkNotApplied", str(said.get("message") or ""))
        reported += dig(work, "status", "resourceStatus", "manifests") or ()
    return _probed(name_of(addon), manifests, reported)


def _probed(addon: str, manifests: Iterable[Obj], reported: Sequence[Obj]) -> Obj:
    probes = [workload_identifier(one) for one in workloads_of(manifests) if not _at_rest(one)]
    results = [(probe, values) for probe in probes for values in _values(probe, reported)]
    if probes and not results:
        return condition(AVAILABLE, "Unknown", "NoProbeResult", "Probe results are not returned")
    for probe, values in results:
        problem = _problem(probe, values)
        if problem:
            return condition(AVAILABLE, "False", "ProbeUnavailable", f"Probe addon unavailable with err {problem}")
    return condition(AVAILABLE, "True", "ProbeAvailable", f"{addon} add-on is available.")


def _at_rest(workload: Obj) -> bool:
    return workload.get("kind") == "Deployment" and dig(workload, "spec", "replicas") == 0


def _values(probe: Obj, reported: Iterable[Obj]) -> Iterable[dict[str, Any]]:
    for one in reported:
        meta = one.get("resourceMeta") or {}
        values = dig(one, "statusFeedback", "values") or ()
        if values and all((meta.get(key) or "") == value for key, value in probe.items()):
            yield {str(each.get("name")): dig(each, "fieldValue", "integer") for each in values}


def _problem(probe: Obj, values: dict[str, Any]) -> str:
    """Return why a workload counts as not running; "" if it runs."""
    ready = next((values[name] for name in values if name in _KNOWN_READY and values[name] is not None), -1)
    wanted = next((values[name] for name in values if name in _KNOWN_WANTED and values[name] is not None), -1)
    if ready == -1:
        return "readyReplica is not probed"
    if wanted == -1:
        return "desiredNumberReplicas is not probed"
    enough = wanted == 0 or ready >= 1 if probe["resource"] == "deployments" else ready == wanted
    if enough:
        return ""
    at = f"{probe['resource']} {probe['namespace']}/{probe['name']}"
    return f"desiredNumberReplicas is {wanted} but readyReplica is {ready} for {at}"

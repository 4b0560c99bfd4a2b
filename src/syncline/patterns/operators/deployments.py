"""The Deployments of a ClusterServiceVersion: what is made of its install strategy, and whether they are up.

Source: OLM's ``install/deployment.go``, ``install/status_viewer.go`` and ``olm/overrides``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, annotations_of, copied, dig, generation, labels_of, name_of, namespace_of, uid_of
from syncline.patterns.operators.names import MANAGED, SPEC_HASH, owner_labels

UPDATED, MISSING_ANNOTATIONS, TIMED_OUT, COMPONENT_MISSING, WAITING = (
    "DeploymentUpdated",
    "AnnotationsMissing",
    "Timeout",
    "ComponentMissing",
    "Waiting",
)
UNRECOVERABLE = frozenset((TIMED_OUT,))
_OTHERS_HASH = re.compile(r"[0-9A-Za-z]{33,}")
"""The hash of a Deployment that upstream's OLM made: it is of Go's memory, and cannot be calculated here."""


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """Why a strategy is not installed yet."""

    reason: str
    message: str

    @property
    def unrecoverable(self) -> bool:
        return self.reason in UNRECOVERABLE


def strategy_problem(csv: Obj) -> str:
    """Return why the install strategy cannot be read; "" if it can."""
    if dig(csv, "spec", "install", "strategy", default="") != "deployment":
        return "unrecognized install strategy"
    for spec in deployment_specs(csv):
        pod = dig(spec, "spec", "template", "spec", default=None) or {}
        for field in ("containers", "initContainers", "volumes", "tolerations"):
            entries = pod.get(field) or []
            if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
                return f"deployment {spec.get('name')}: {field} of its pods is not a list of objects"
        for one in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
            if not all(isinstance(one.get(field) or [], list) for field in ("env", "envFrom", "volumeMounts")):
                return f"deployment {spec.get('name')}: env, envFrom and volumeMounts are lists"
        marks = dig(spec, "spec", "template", "metadata", "annotations", default=None) or {}
        if not isinstance(marks, dict):
            return f"deployment {spec.get('name')}: annotations of its pods are not a map"
    return ""


def deployment_specs(csv: Obj) -> Sequence[Obj]:
    return dig(csv, "spec", "install", "spec", "deployments", default=None) or ()


def wanted_deployment(csv: Obj, spec: Obj, config: Obj | None = None) -> Obj:
    """Return the Deployment for an entry of the strategy. ``config``: ``spec.config`` of the Subscription."""
    made: Obj = copied(spec.get("spec") or {})
    template = made.setdefault("template", {})
    metadata = template.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations_of(csv)}
    pod = template.setdefault("spec", {})
    _configure(pod, metadata, config or {})
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        _put_named(container, "env", [{"name": "OPERATOR_CONDITION_NAME", "value": name_of(csv)}])
    made["revisionHistoryLimit"] = 1
    owner = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "name": name_of(csv),
        "uid": uid_of(csv),
        "controller": False,
        "blockOwnerDeletion": False,
    }
    labels = {**(spec.get("label") or {}), MANAGED: "true", **owner_labels(name_of(csv), namespace_of(csv))}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": str(spec.get("name") or ""),
            "namespace": namespace_of(csv),
            "labels": {**labels, SPEC_HASH: _hash(made)},
            "ownerReferences": [owner],
        },
        "spec": made,
    }


def _hash(spec: Obj) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:32]


def _put_named(holder: Obj, field: str, new: Sequence[Obj]) -> None:
    """Add named entries to a list; one of the same name is replaced."""
    names = {one["name"] for one in new}
    kept = [one for one in holder.get(field) or () if one.get("name") not in names]
    if new:
        holder[field] = [*kept, *copied(list(new))]


def _configure(pod: Obj, metadata: Obj, config: Obj) -> None:
    """Change a pod template as ``spec.config`` of a Subscription says (``olm/overrides/inject``)."""
    if config.get("annotations"):
        metadata["annotations"] = {**config["annotations"], **metadata["annotations"]}
    if "nodeSelector" in config:
        pod["nodeSelector"] = dict(config["nodeSelector"])
    if config.get("tolerations"):
        known = pod.get("tolerations") or []
        pod["tolerations"] = [*known, *(one for one in config["tolerations"] if one not in known)]
    if config.get("affinity") is not None:
        _affinity(pod, config["affinity"])
    _put_named(pod, "volumes", config.get("volumes") or ())
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        _put_named(container, "env", config.get("env") or ())
        _put_named(container, "volumeMounts", config.get("volumeMounts") or ())
        known = container.get("envFrom") or []
        more = [one for one in config.get("envFrom") or () if one not in known]
        if more:
            container["envFrom"] = [*known, *more]
        if config.get("resources"):
            container["resources"] = copied(config["resources"])


def _affinity(pod: Obj, wanted: Mapping[str, Any]) -> None:
    """Override the affinity: an empty object erases it, an empty part erases that part."""
    parts = ("nodeAffinity", "podAffinity", "podAntiAffinity")
    if not any(wanted.get(part) is not None for part in parts):
        pod.pop("affinity", None)
        return
    found = dict(pod.get("affinity") or {})
    for part in parts:
        if wanted.get(part) is not None:
            found.pop(part, None)
            if wanted[part]:
                found[part] = copied(wanted[part])
    pod.pop("affinity", None)
    if found:
        pod["affinity"] = found


def deployment_progress(deployment: Obj) -> tuple[str, bool, bool]:
    """Return what a Deployment waits for, whether it is up, and whether it has given up."""
    name, status = name_of(deployment), deployment.get("status") or {}
    if generation(deployment) > int(status.get("observedGeneration") or 0):
        return f'waiting for spec update of deployment "{name}" to be observed...', False, False
    conditions = {str(one.get("type")): one for one in status.get("conditions") or ()}
    if conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
        return f'deployment "{name}" exceeded its progress deadline', False, True
    outdated = int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)
    if outdated > 0:
        return f'deployment "{name}" waiting for {outdated} outdated replica(s) to be terminated', False, False
    available = conditions.get("Available")
    if available is None or available.get("status") != "True":
        message = 'missing condition "Available"' if available is None else str(available.get("message") or "")
        return f'deployment "{name}" not available: {message}', False, False
    return f'deployment "{name}" is up-to-date and available', True, False


def check_installed(csv: Obj, deployments: Mapping[str, Obj], config: Obj | None = None) -> NotInstalled | None:
    """Return why the strategy is not installed; None if it is. ``deployments``: those of OLM in the namespace."""
    marks = owner_labels(name_of(csv), namespace_of(csv))
    for spec in deployment_specs(csv):
        name = str(spec.get("name") or "")
        deployment = deployments.get(name)
        if deployment is None or not marks.items() <= labels_of(deployment).items():
            return NotInstalled(COMPONENT_MISSING, f"missing deployment with name={name}")
        problem = _problem(csv, spec, deployment, config)
        if problem is not None:
            return problem
    return None


def _problem(csv: Obj, spec: Obj, deployment: Obj, config: Obj | None) -> NotInstalled | None:
    name = name_of(deployment)
    reason, up, gave_up = deployment_progress(deployment)
    if gave_up:
        return NotInstalled(TIMED_OUT, f"deployment {name} not ready before timeout: {reason}")
    if not up:
        return NotInstalled(WAITING, f"waiting for deployment {name} to become ready: {reason}")
    found = dig(deployment, "spec", "template", "metadata", "annotations", default=None)
    for key, value in annotations_of(csv).items():
        if found is None:
            return NotInstalled(MISSING_ANNOTATIONS, "no annotations found on deployment")
        if key not in found:
            text = f"annotations on deployment does not contain expected key: {key}"
            return NotInstalled(MISSING_ANNOTATIONS, text)
        if found[key] != value:
            text = f"unexpected annotation on deployment. Expected {key}:{value}, found {key}:{found[key]}"
            return NotInstalled(MISSING_ANNOTATIONS, text)
    old = labels_of(deployment).get(SPEC_HASH)
    if old is None:
        return NotInstalled(UPDATED, f"deployment {name} doesn't have a spec hash, update it")
    new = labels_of(wanted_deployment(csv, spec, config))[SPEC_HASH]
    if old != new and not _OTHERS_HASH.fullmatch(old):
        return NotInstalled(UPDATED, f"deployment changed old hash={old}, new hash={new}")
    return None

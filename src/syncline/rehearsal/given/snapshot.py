"""A cluster as a file, and a world of such a file; pure. Entry points: :func:`snapshot_of`, :func:`world_of`.

A snapshot holds what people installed, not what controllers make of it. Values of Secrets become digests with a salt
that is kept nowhere, so equal values are equal within one snapshot and nothing else is known of them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from syncline.kube.kinds.argoproj import GROUP
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, meta, name_of, namespace_of, owner_references
from syncline.kube.schema.extensions import MACHINE
from syncline.kube.yaml.loading import dump
from syncline.machineconfig.impact.pace import sampled
from syncline.rehearsal.given.durations import GUESSES, Duration, Origin
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld, parse_world
from syncline.rehearsal.scenario import ScenarioError

KIND, VERSION = "RehearsalSnapshot", "syncline.dev/v1alpha1"
MAX_OBJECTS = 50_000
LEFT_OUT = frozenset(
    (
        *("ReplicaSet", "EndpointSlice", "Endpoints", "Lease", "ControllerRevision", "CertificateSigningRequest"),
        *("MachineConfigNode", "ControllerConfig", "APIService", "FlowSchema", "PriorityLevelConfiguration", "Hold"),
        *("CSINode", "VolumeAttachment", "IPAddress", "ServiceCIDR", "TokenReview", "ComponentStatus", "PodMetrics"),
        *("NodeMetrics", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
    )
)
"""Kinds that controllers make again, and webhooks, whose servers no world has."""
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
FIRST = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ServiceAccount",
    "ClusterRole",
    "Role",
)
LAST = ("PodDisruptionBudget",)
MADE_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
ROLE = "node-role.kubernetes.io/"
ZONE = "topology.kubernetes.io/zone"
OF_KUBELET = ("kubernetes.io/", "beta.kubernetes.io/", "topology.kubernetes.io/", "node.kubernetes.io/")
OF_JOB = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_PULLED = re.compile(r"Successfully pulled image .* in ([0-9.]+)(ms|s)\b")
GENERATED = "machineconfiguration.openshift.io/generated-by-controller-version"
MOST_SHARE, LEAST_SHARE = 2.0, 0.5
"""Of a measured duration: the range that is rehearsed."""


# -- taking ------------------------------------------------------------------------------------------------------------


def snapshot_of(objects: Iterable[Obj], salt: bytes) -> Obj:
    """Return the document of a cluster's objects. Raises ScenarioError if there are too many."""
    every = list(objects)
    kept = [_redacted(obj, salt) for obj in every if _is_kept(obj)]
    if len(kept) > MAX_OBJECTS:
        raise ScenarioError(f"the cluster has {len(kept)} objects to keep; a snapshot holds at most {MAX_OBJECTS}")
    kept.sort(key=lambda obj: (_rank(obj), str(obj["kind"]), namespace_of(obj), name_of(obj)))
    measured = {name: {"seconds": seconds, "samples": count} for name, (seconds, count) in _measured(every).items()}
    return {"apiVersion": VERSION, "kind": KIND, "measured": measured, "objects": kept}


def _is_kept(obj: Obj) -> bool:
    kind, name = str(obj.get("kind")), name_of(obj)
    if kind in LEFT_OUT or kind == "Event" or namespace_of(obj) in SYSTEM or (kind == "Namespace" and name in SYSTEM):
        return False
    if any(owner.get("controller") for owner in owner_references(obj)) or name.startswith("system:"):
        return False
    if kind == "Secret" and obj.get("type") == "kubernetes.io/service-account-token":
        return False
    return GENERATED not in annotations_of(obj)


def _rank(obj: Obj) -> int:
    kind = str(obj["kind"])
    return FIRST.index(kind) if kind in FIRST else len(FIRST) + (kind in LAST)


def _redacted(obj: Obj, salt: bytes) -> Obj:
    metadata = {key: value for key, value in meta(obj).items() if key not in MADE_BY_SERVER}
    notes = {key: value for key, value in annotations_of(obj).items() if "last-applied" not in key}
    metadata = (
        {**metadata, "annotations": notes} if notes else {k: v for k, v in metadata.items() if k != "annotations"}
    )
    found = {**obj, "metadata": metadata}
    if obj.get("kind") == "Secret":
        values = obj.get("data") or {}
        found["data"] = {key: _digest(str(value), salt) for key, value in values.items()}
        found["metadata"] = {key: value for key, value in metadata.items() if key != "annotations"}
        found.pop("stringData", None)
    if obj.get("kind") == "Job" and not dig(obj, "spec", "manualSelector"):
        found["spec"] = _of_job(obj["spec"])
    return found if obj.get("kind") == "Node" else {key: value for key, value in found.items() if key != "status"}


def _of_job(spec: Obj) -> Obj:
    """Return the spec of a Job as people wrote it: the API selects pods by the uid that it had there."""
    metadata = dig(spec, "template", "metadata", default={})
    own = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in OF_JOB}
    template = {**spec["template"], "metadata": {**metadata, "labels": own}}
    return {**{key: value for key, value in spec.items() if key != "selector"}, "template": template}


def _digest(value: str, salt: bytes) -> str:
    text = hmac.new(salt, value.encode(), hashlib.sha256).hexdigest()[:16]
    return base64.b64encode(f"digest:{text}".encode()).decode()


def pulls_of(events: Iterable[Obj]) -> list[float]:
    """Return the seconds that pulls of images took, as Events tell."""
    found = (_PULLED.search(str(event.get("message"))) for event in events)
    return [float(each[1]) / (1000 if each[2] == "ms" else 1) for each in found if each is not None]


def _measured(objects: Sequence[Obj]) -> Mapping[str, tuple[float, int]]:
    """Return medians of what Events tell: seconds and how many there were."""
    events = [obj for obj in objects if obj.get("kind") == "Event"]
    records = [obj for obj in objects if obj.get("kind") == "MachineConfigNode"]
    found: dict[str, tuple[float, int]] = {}
    pulls = pulls_of(events)
    if pulls:
        found["pull"] = round(median(pulls), 3), len(pulls)
    reboots = sampled(events, records).by_step.get("reboot") or {}
    if reboots:
        found["reboot"] = round(median(reboots.values()), 1), len(reboots)
    return found


# -- using -------------------------------------------------------------------------------------------------------------


def world_of(document: Any, name: str) -> GivenWorld:
    """Return the world of a snapshot. Raises ScenarioError (usage) if it is none."""
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("apiVersion") != VERSION:
        raise ScenarioError(f"{name}: is no snapshot; allowed: what `syncline snapshot` writes ({VERSION})", usage=True)
    objects = [
        obj for obj in document.get("objects") or () if isinstance(obj, dict) and obj.get("kind") and name_of(obj)
    ]
    nodes = [obj for obj in objects if obj["kind"] == "Node"]
    if not nodes:
        raise ScenarioError(f"{name}: found no Node in the snapshot; take it with the right to list nodes", usage=True)
    pools = any(obj["kind"] == "MachineConfigPool" for obj in objects)
    text = dump({"machineConfig": pools, "nodes": [_node(node) for node in nodes]})
    world = parse_world(text, Path("world.yaml"), Files(dict(_files(objects))))
    counts = f"{len(nodes)} nodes, {len(objects) - len(nodes)} objects"
    return replace(
        world,
        durations={**GUESSES, **dict(_durations(document.get("measured") or {}))},
        applications=tuple(obj for obj in objects if str(obj.get("apiVersion")).startswith(f"{GROUP}/")),
        lenient=True,
        assumed=(f"the cluster is as in {name}: {counts}; its pods are placed again",),
    )


def _files(objects: Iterable[Obj]) -> Iterator[tuple[str, bytes]]:
    for number, obj in enumerate(objects):
        if obj["kind"] == "Node" or str(obj.get("apiVersion")).startswith(f"{GROUP}/"):
            continue
        place = "-".join(filter(None, (namespace_of(obj), name_of(obj)))).replace("/", "-").replace(":", "-")
        yield f"cluster/{number:05}-{str(obj['kind']).lower()}-{place}.yaml", dump(obj).encode()


def _node(node: Obj) -> Obj:
    labels = labels_of(node)
    roles = sorted(label.removeprefix(ROLE) for label in labels if label.startswith(ROLE))
    own = {key: value for key, value in labels.items() if not key.startswith((ROLE, MACHINE, *OF_KUBELET))}
    taints = [
        f"{taint.get('key')}{'=' + str(taint['value']) if taint.get('value') else ''}:{taint.get('effect')}"
        for taint in dig(node, "spec", "taints", default=[])
        if not str(taint.get("key")).startswith("node.kubernetes.io/")
    ]
    found: Obj = {"name": name_of(node), "roles": roles, "labels": own, "taints": taints}
    found |= {
        key: str(dig(node, "status", "capacity", key))
        for key in ("cpu", "memory")
        if dig(node, "status", "capacity", key)
    }
    found["zone"] = labels.get(ZONE, "")
    return {key: value for key, value in found.items() if value}


def _durations(measured: Mapping[str, Any]) -> Iterator[tuple[str, Duration]]:
    for name in ("pull", "reboot"):
        seconds = dig(measured, name, "seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < 86_400:
            continue
        if name == "pull":
            yield name, _of(name, seconds)
        else:  # from the request to Done: what the shutdown leaves is the boot's
            down = min(GUESSES["shutdown"].usual_s, seconds / 4)
            yield "shutdown", _of("shutdown", down)
            yield "boot", _of("boot", seconds - down)


def _of(name: str, seconds: float) -> Duration:
    usual = round(float(seconds), 3)
    return Duration(name, usual, usual * LEAST_SHARE, usual * MOST_SHARE, Origin.MEASURED)

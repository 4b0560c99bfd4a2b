"""Every name under ``syncline.dev/`` that stands on an object: where it is read, who writes it, what bounds it; pure.

One table. A test walks the source for such names and fails where one is missing here or in docs/extensions.md; readers
of JSON that we note on objects come here, too, since a client that may write the object may write the note.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from syncline.kube.objects import Obj, annotations_of

GROUP = "syncline.dev"
MACHINE, SIMULATED = "syncline.dev/machine", "simulated"
"""Annotation of a Node, and its value if ``syncline node`` manages its machine."""
SOURCE = f"{GROUP}/source"
"""Annotation of an Application: its source without a chart holds the values of the chart that it names."""
SIMULATED_SERVER, SIMULATED_WEBHOOKS = "syncline.dev/simulated-server", "webhooks"
"""Annotation of a Service, and of a definition that a webhook converts, on the embedded cluster: no process answers in
its simulated pods. The resources of its aggregated APIs, ``plural=Kind`` by comma, or ``webhooks``: all is allowed."""
MAX_NOTE = 65_536
"""Characters of a note that is read as JSON."""
MAX_ANNOTATIONS = 262_144
"""Characters that Kubernetes allows for all annotations of an object."""


class Trust(StrEnum):
    """What a tenant gains who writes it in a repository or on an Application of theirs."""

    OWN = "own"
    """It changes only what happens to his own objects."""
    PROJECT = "project"
    """It names objects of others; the project decides which (``argo/project/references.py``)."""
    RIGHTS = "rights"
    """It stands on objects that only who may write cluster-scoped or control-plane objects can reach."""


@dataclass(frozen=True, slots=True)
class Extension:
    """``on``: kinds that it is read on. ``ours``: written by Syncline. ``bound``: what is allowed as its value."""

    name: str
    on: str
    trust: Trust
    bound: str
    ours: bool = False

    @property
    def key(self) -> str:
        return f"{GROUP}/{self.name}"


def _of_pods() -> tuple[Extension, ...]:
    """Simulated containers; with ``.CONTAINER`` at the end for one of them."""
    seconds = "seconds from 0 to ten years, or `never` or `forever`"
    durations = ("pull", "start", "ready", "stop", "run", "startup", "unready", "live")
    words = {
        "exit-code": "numbers by comma",
        "ready": "`never`",
        "post-start": "`fail`",
        "end-reason": "a word",
        "end-message": "text",
        "image-pull": "`fail` and `ok` by comma",
        "run": "`process`; only with --run-commands, in the sandbox of every such pod",
    }
    timed = tuple(Extension(f"{name}-seconds", "Pod", Trust.OWN, seconds) for name in durations)
    return (*timed, *(Extension(name, "Pod", Trust.OWN, bound) for name, bound in words.items()))


_OWN, _PROJECT, _RIGHTS = Trust.OWN, Trust.PROJECT, Trust.RIGHTS
EXTENSIONS: tuple[Extension, ...] = (
    *_of_pods(),
    # Applications and their manifests, written by people.
    Extension("wait-for", "any manifest", _PROJECT, "50 conditions, 500 for an operation, 16384 characters, 720h"),
    Extension("gate", "Subscription", _PROJECT, "`csv-succeeded` or `none`; looked at by name, at most 200 objects"),
    Extension("sequence-job", "Subscription, Application", _PROJECT, "`wait`; an hour, or `gate-deadline`"),
    Extension("source", "Application", _OWN, "`clustergroup`, `acm` or `ansible`"),
    Extension("spokes-empty", "Pattern", _RIGHTS, "`true`; read while the Pattern is being deleted"),
    Extension("depends-on", "Application", _PROJECT, "50 names; 200 along the chains"),
    Extension("hold-pools", "Application", _PROJECT, "100 names, `all` or `none`; 6 hours for an operation"),
    Extension("leave-paused", "Application", _OWN, "`true`; without it the controller resumes, with it nothing"),
    Extension("pools", "AppProject", _RIGHTS, "100 names or globs"),
    Extension("gate-deadline", "any manifest", _OWN, "a duration of more than 0s and at most 720h"),
    Extension("on-deadline", "any manifest", _OWN, "`wait`, `fail` or `continue`"),
    Extension(
        "deletion-guard",
        "Application, ApplicationSet",
        _OWN,
        "`off`, or a count of at most 9 digits and a percentage of 3",
    ),
    Extension("confirm-deletions", "Application, ApplicationSet", _OWN, "the hash of exactly these deletions"),
    Extension("rollout-evidence", "ApplicationSet", _OWN, "`strict`"),
    Extension("content", "Application", _PROJECT, "`agent`; the hub's AppProject permits the repositories"),
    Extension("also-on-hub", "Application", _PROJECT, "`true`; the hub's AppProject permits the hub as destination"),
    Extension("seal", "any manifest", _OWN, "`true`; its content is sealed for the cluster"),
    Extension("rendered", "Application", _OWN, "a digest; content is read only by the Application it names", ours=True),
    Extension("rotated-at", "Secret", _RIGHTS, "a time", ours=True),
    Extension("spread", "Placement", _OWN, "`true`"),
    Extension("run-hook", "hook", _OWN, "`on-change`"),
    Extension("hook-inputs", "hook", _OWN, "`KIND/NAME` among the manifests of the same sync; nothing is looked up"),
    Extension("overtake", "Application", _OWN, "`true`"),
    # The order over clusters.
    Extension("cluster-wave", "Application, ManagedCluster (label)", _OWN, "an integer of at most six digits"),
    Extension("healthy-for", "Application", _OWN, "a duration from 0s to 720h"),
    Extension("pin-revisions", "Application", _OWN, "`false`"),
    Extension(
        "maintenance-windows", "ManagedCluster, ManagedClusterSet", _RIGHTS, "JSON, 65536 characters, 20 windows"
    ),
    Extension("release", "Application on a cluster", _OWN, "12 hexadecimal digits", ours=True),
    # Written by us on objects that tenants may write.
    Extension("operation", "hook, generated object", _OWN, "the name of an attempt, compared as a whole", ours=True),
    Extension("operation-started", "Application", _OWN, "digits, a dot, at most 6 digits", ours=True),
    Extension("deletion-confirmed", "Application", _OWN, "the hash that confirms a deletion of its set", ours=True),
    Extension("hooks-run", "Application", _OWN, "JSON, 65536 characters, 150 hooks", ours=True),
    Extension("pools-at-start", "Application", _PROJECT, "JSON, 65536 characters, 200 pools", ours=True),
    Extension("pools-left-paused", "Application", _PROJECT, "JSON, 65536 characters", ours=True),
    # Cluster-scoped objects and Leases.
    Extension("held-for", "Hold (label)", _RIGHTS, "a digest of the Application", ours=True),
    Extension("held", "MachineConfigPool", _RIGHTS, "JSON, 65536 characters", ours=True),
    Extension("canaries", "MachineConfigPool", _RIGHTS, "a count or a percentage"),
    Extension("drain", "Node, MachineConfigPool", _RIGHTS, "`insist`"),
    Extension("update-order", "Node", _RIGHTS, "an integer"),
    Extension("power", "Node", _RIGHTS, "`on` or `off`"),
    Extension("reboot", "Node", _RIGHTS, "an id"),
    Extension("reboot-done", "Node", _RIGHTS, "an id", ours=True),
    Extension("reboot-from", "Node", _RIGHTS, "a boot id", ours=True),
    Extension("machine", "Node", _RIGHTS, "`simulated`"),
    Extension("machine-", "Node", _RIGHTS, "size of the simulated machine: quantities, a count", ours=True),
    Extension("boots", "Node", _RIGHTS, "a count", ours=True),
    Extension("drain-progress", "Node", _RIGHTS, "JSON, 65536 characters", ours=True),
    Extension("drain-blocked", "Node", _RIGHTS, "JSON, 65536 characters", ours=True),
    Extension("keep-cordon", "Node", _RIGHTS, "present or absent", ours=True),
    Extension("writing", "Node", _RIGHTS, "a MachineConfig's name", ours=True),
    Extension("writing-image", "Node", _RIGHTS, "an image", ours=True),
    Extension("ansible", "Node", _RIGHTS, "JSON, 16000 characters", ours=True),
    Extension("simulated-outcome", "AnsibleConfig", _RIGHTS, "JSON; nothing but simulated machines reads it"),
    Extension("staged-again", "Node", _RIGHTS, "a count", ours=True),
    Extension("unsupported-packages", "Node", _RIGHTS, "a count", ours=True),
    Extension("no-kubelet", "Node (taint)", _RIGHTS, "a taint of nodes without kubelet", ours=True),
    Extension("node", "Lease", _RIGHTS, "a node's name", ours=True),
    Extension("lease-group", "Lease (label)", _RIGHTS, "a group's name", ours=True),
    Extension("hub", "Secret (label)", _RIGHTS, "the hash of a hub's URL", ours=True),
    Extension("part-of", "MulticlusterApplicationSetReport", _RIGHTS, "a name", ours=True),
    Extension("operation-after", "ManifestWork", _RIGHTS, "a time, or empty", ours=True),
    Extension("shards", "Lease", _RIGHTS, "a count of at most 64", ours=True),
    Extension("simulated-server", "Service, CustomResourceDefinition", _RIGHTS, "`webhooks`, or 100 `plural=Kind`"),
    Extension("stand-in", "ClusterServiceVersion", _RIGHTS, "`true`; nothing reads it", ours=True),
    Extension("cluster-scoped", "olm.csv.metadata of a catalogue", _RIGHTS, "kinds by comma, of the same bundle"),
    Extension("simulated", "StorageClass (provisioner)", _RIGHTS, "the provisioner's name"),
)


def json_note(obj: Obj, annotation: str, limit: int = MAX_NOTE) -> Any:
    """What an annotation holds as JSON; None where there is none, or none that can be read."""
    text = annotations_of(obj).get(annotation)
    if text is None or len(text) > limit:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

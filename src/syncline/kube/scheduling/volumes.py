"""Claims and volumes: which volume suits a claim, which node can reach it, and what that means for a pod.

Called by the controllers of claims and by the scheduler's filters. Objects come in; a volume, a sentence or a choice
leaves. Nothing is bound here.

Sources: Kubernetes ``volume.FindMatchingVolume``; the scheduler's plug-ins VolumeBinding and VolumeZone (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from syncline.kube.objects import Obj, annotations_of, dig, is_terminating, labels_of, name_of, namespace_of, uid_of
from syncline.kube.scheduling.terms import Term
from syncline.kube.selectors import label_selector_from
from syncline.kube.text.quantity import ZERO, Quantity, QuantityError, parse_quantity

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
_NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
_ZONE = "node(s) had no available volume zone"
_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


# -- a claim and a volume --------------------------------------------------------------------------------------------


def is_for(volume: Obj, claim: Obj) -> bool:
    """The volume names this claim; by uid, once it has been bound."""
    reference = dig(volume, "spec", "claimRef", default={})
    named = (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim))
    return named and reference.get("uid") in (None, "", uid_of(claim))


def best_volume(claim: Obj, volumes: Iterable[Obj], node: Obj | None = None) -> Obj | None:
    """A volume that is reserved for the claim, or the smallest free one that suits it (and that the node reaches,
    where one is given); equal ones by name."""
    suiting = [
        each
        for each in volumes
        if not is_terminating(each) and _suits(each, claim) and (node is None or reaches(node, each))
    ]
    if not suiting:
        return None
    return min(suiting, key=lambda v: (not is_for(v, claim), _size(dig(v, "spec", "capacity", "storage")), name_of(v)))


def _suits(volume: Obj, claim: Obj) -> bool:
    wanted, has = claim.get("spec") or {}, volume.get("spec") or {}
    if has.get("claimRef") and not is_for(volume, claim):
        return False
    if (wanted.get("storageClassName") or "") != (has.get("storageClassName") or ""):
        return False
    if (wanted.get("volumeMode") or "Filesystem") != (has.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return False
    if wanted.get("selector") is not None and not label_selector_from(wanted["selector"]).matches(labels_of(volume)):
        return False
    request = _size(dig(wanted, "resources", "requests", "storage"))
    return _size(dig(has, "capacity", "storage")) >= request


def mismatch(volume: Obj, claim: Obj) -> str:
    """Why a free volume that a claim names does not suit it, in Kubernetes' words (``checkVolumeSatisfyClaim``); empty
    where it does. Its labels do not matter."""
    wanted, has = claim.get("spec") or {}, volume.get("spec") or {}
    if is_terminating(volume):
        return f'the volume is marked for deletion "{name_of(volume)}"'
    if _size(dig(has, "capacity", "storage")) < _size(dig(wanted, "resources", "requests", "storage")):
        return "requested PV is too small"
    for field_name, otherwise, text in (
        ("storageClassName", "", "storageClassName does not match"),
        ("volumeAttributesClassName", "", "volumeAttributesClassName does not match"),
        ("volumeMode", "Filesystem", "incompatible volumeMode"),
    ):
        if (wanted.get(field_name) or otherwise) != (has.get(field_name) or otherwise):
            return text
    if not set(wanted.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def _size(value: object) -> Quantity:
    try:
        return parse_quantity(value) if isinstance(value, str | int) else ZERO
    except QuantityError:
        return ZERO


def reaches(node: Obj, volume: Obj) -> bool:
    """One of the terms of the volume's node affinity matches the node; without affinity every node reaches it."""
    required = dig(volume, "spec", "nodeAffinity", "required")
    if required is None:
        return True
    return any(Term.node_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def delays_binding(claim: Obj, classes: Mapping[str, Obj]) -> bool:
    """The class binds when the first pod is placed (WaitForFirstConsumer)."""
    known = classes.get(str(dig(claim, "spec", "storageClassName", default="")))
    return known is not None and known.get("volumeBindingMode") == "WaitForFirstConsumer"


def _is_bound(claim: Obj) -> bool:
    return bool(dig(claim, "spec", "volumeName")) and BOUND in annotations_of(claim)


def claim_names(pod: Obj) -> list[str]:
    """Claims that the pod's volumes name, and those that are made for its ephemeral volumes, in their order."""
    names = [_claim_name(pod, each) for each in dig(pod, "spec", "volumes", default=[])]
    return [name for name in dict.fromkeys(names) if name]


def _claim_name(pod: Obj, volume: Obj) -> str:
    if "ephemeral" in volume:
        return ephemeral_claim_name(pod, volume)
    return str(dig(volume, "persistentVolumeClaim", "claimName", default=""))


def ephemeral_claim_name(pod: Obj, volume: Obj) -> str:
    return f"{name_of(pod)}-{volume.get('name')}"


def is_made_for(claim: Obj, pod: Obj) -> bool:
    """The claim of an ephemeral volume belongs to its pod."""
    owners = dig(claim, "metadata", "ownerReferences", default=[])
    return any(owner.get("controller") and owner.get("uid") == uid_of(pod) for owner in owners)


# -- the storage that a pod needs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Storage:
    """What there is: claims by namespace and name, volumes and classes by name."""

    claims: Mapping[tuple[str, str], Obj] = field(default_factory=dict)
    volumes: Mapping[str, Obj] = field(default_factory=dict)
    classes: Mapping[str, Obj] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Volumes that a driver attaches to a node at most, by node and driver (from CSINodes)."""


def attach_limits(csi_node: Obj) -> dict[str, int]:
    """Drivers of a CSINode that say how many volumes they attach, for :attr:`Storage.limits`."""
    counts = {
        str(driver.get("name")): dig(driver, "allocatable", "count")
        for driver in dig(csi_node, "spec", "drivers", default=[])
    }
    return {name: int(count) for name, count in counts.items() if count is not None}


@dataclass(frozen=True, slots=True)
class Choice:
    """How one claim gets its volume on a chosen node: this one, or a new one where ``volume`` is None."""

    claim: Obj
    volume: Obj | None


class PodVolumes:
    """Volumes of one pod, examined once, then asked about each node.

    ``problem`` is a sentence that holds for all nodes; ``unbound`` are the claims that wait for this pod's node.
    """

    def __init__(self, pod: Obj, storage: Storage) -> None:
        self._storage = storage
        self.problem = ""
        self.unbound: list[Obj] = []
        self._bound: list[Obj] = []
        claims = []
        ephemeral = {
            ephemeral_claim_name(pod, each) for each in dig(pod, "spec", "volumes", default=[]) if "ephemeral" in each
        }
        for name in claim_names(pod):
            claim = storage.claims.get((namespace_of(pod), name))
            self.problem = self.problem or _missing(name, claim, pod if name in ephemeral else None)
            claims += [claim] if claim is not None else []
        for claim in claims if not self.problem else ():
            self._look_at(claim)

    def _look_at(self, claim: Obj) -> None:
        if not _is_bound(claim):
            if dig(claim, "spec", "volumeName") or not delays_binding(claim, self._storage.classes):
                self.problem = self.problem or _IMMEDIATE
            self.unbound.append(claim)
            return
        volume = self._storage.volumes.get(str(claim["spec"]["volumeName"]))
        if volume is None:
            what = f'bound to non-existent persistentvolume "{claim["spec"]["volumeName"]}"'
            self.problem = self.problem or f'persistentvolumeclaim "{name_of(claim)}" {what}'
        else:
            self._bound.append(volume)

    def refusal(self, node: Obj) -> str:
        """Why the node is none for the pod's volumes; empty if it is."""
        if not self._bound and not self.unbound:
            return ""
        if any(not reaches(node, each) for each in self._bound):
            return _AFFINITY
        if self.unbound and self.choices(node) is None:
            return _NOTHING_TO_BIND
        labels = labels_of(node)
        return "" if all(_in_zone(labels, each) for each in self._bound) else _ZONE

    def choices(self, node: Obj) -> tuple[Choice, ...] | None:
        """How every unbound claim would get its volume there; None if one cannot. No volume is given out twice."""
        left = dict(self._storage.volumes)
        found = []
        for claim in self.unbound:
            volume = best_volume(claim, left.values(), node)
            if volume is not None:
                del left[name_of(volume)]
            elif not _makes_one(claim, node, self._storage.classes):
                return None
            found.append(Choice(claim, volume))
        return tuple(found)

    def selected(self) -> str:
        """The node for which all unbound claims are being provided already; empty if there is none."""
        nodes = {annotations_of(claim).get(SELECTED_NODE, "") for claim in self.unbound}
        return nodes.pop() if len(nodes) == 1 else ""


def _missing(name: str, claim: Obj | None, ephemeral_of: Obj | None) -> str:
    if claim is None and ephemeral_of is not None:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if is_terminating(claim):
        return f'persistentvolumeclaim "{name}" is being deleted'
    if dig(claim, "status", "phase") == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim["spec"]["volumeName"]}"'
    if ephemeral_of is not None and not is_made_for(claim, ephemeral_of):
        where = namespace_of(claim)
        return f"PVC {where}/{name} was not created for pod {where}/{name_of(ephemeral_of)} (pod is not owner)"
    return ""


def _makes_one(claim: Obj, node: Obj, classes: Mapping[str, Obj]) -> bool:
    """The class has a provisioner, and its topologies allow the node."""
    known = classes.get(str(dig(claim, "spec", "storageClassName", default="")))
    if known is None or known.get("provisioner") in (None, "", NO_PROVISIONER):
        return False
    terms = known.get("allowedTopologies") or []
    return not terms or any(_in_topology(labels_of(node), term) for term in terms)


def _in_topology(labels: Mapping[str, str], term: Obj) -> bool:
    wanted = term.get("matchLabelExpressions") or []
    return all(labels.get(str(each.get("key"))) in (each.get("values") or ()) for each in wanted)


def _in_zone(labels: Mapping[str, str], volume: Obj) -> bool:
    """Zone labels of a volume (of old provisioners) name the zones it is in, joined by ``__``; a node without zone
    labels is anywhere."""
    wanted = {key: value.split("__") for key, value in labels_of(volume).items() if key in _ZONES}
    known = [key for key in _ZONES if key in labels]
    return not known or all(labels.get(key) in values for key, values in wanted.items())

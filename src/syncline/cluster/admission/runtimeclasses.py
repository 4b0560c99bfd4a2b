"""Add a RuntimeClass's overhead and scheduling rules to its Pods (plug-in RuntimeClass).

``pods`` calls it with the spec of a Pod that the request owns; changed in place.
"""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.storage.store import Key, Store
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import QuantityError, parse_quantity

_CLASSES = "node.k8s.io/runtimeclasses"


def admit(store: Store, attempt: Attempt, spec: Obj) -> None:
    found = _class_of(store, attempt, spec)
    overhead = dig(found, "overhead", default=None) if found is not None else None
    if overhead is None:
        if spec.get("overhead") is not None:
            reason = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbid(attempt, f"pod rejected: {reason}")
    else:
        fixed = dict(overhead.get("podFixed") or {})
        if spec.get("overhead") and not _same_amounts(spec["overhead"], fixed):
            raise forbid(attempt, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = fixed
    if found is not None and found.get("scheduling"):
        _place(attempt, spec, found["scheduling"])


def _class_of(store: Store, attempt: Attempt, spec: Obj) -> Obj | None:
    name = spec.get("runtimeClassName")
    if name is None:
        return None
    stored = store.get(Key(_CLASSES, "", str(name)))
    if stored is None:
        raise forbid(attempt, f'pod rejected: RuntimeClass "{name}" not found')
    return stored.obj


def _same_amounts(left: Obj, right: Obj) -> bool:
    try:
        return {name: parse_quantity(value) for name, value in left.items()} == {
            name: parse_quantity(value) for name, value in right.items()
        }
    except QuantityError:
        return False


def _place(attempt: Attempt, spec: Obj, scheduling: Obj) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            said = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = "
            raise forbid(attempt, f"conflict: {said}{selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    merged = _merged([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    if merged:
        spec["tolerations"] = merged


def _merged(tolerations: list[Obj]) -> list[Obj]:
    """Drop tolerations that another one covers; of equal ones the first stays."""
    kept: list[Obj] = []
    for index, each in enumerate(tolerations):
        later = tolerations[index + 1 :]
        if not any(_covers(other, each) for other in kept) and not any(
            other != each and _covers(other, each) for other in later
        ):
            kept.append(each)
    return kept


def _covers(wide: Obj, narrow: Obj) -> bool:
    """Return whether ``wide`` tolerates every taint that ``narrow`` does, for as long (``isSuperset``)."""
    if wide == narrow:
        return True
    if wide.get("key") and wide.get("key") != narrow.get("key"):
        return False
    if not wide.get("key") and wide.get("operator") != "Exists":
        return False
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("effect") == "NoExecute":
        longest, wanted = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
        if longest is not None and (wanted is None or longest < wanted):
            return False
    if wide.get("operator") == "Exists":
        return True
    same = (wide.get("operator") or "Equal") == (narrow.get("operator") or "Equal")
    return same and wide.get("value") == narrow.get("value")

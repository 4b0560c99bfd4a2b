"""What a pod asks for and what a node has to give.

Amounts are integers in the unit the scheduler counts in: millicores for cpu, whole units for all else.
Source of the rule: Kubernetes ``resourcehelper.PodRequests``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from syncline.base.remember import MAX_REMEMBERED_CHARS
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import Quantity, QuantityError, parse_quantity

ROOM = "pods"
"""The resource that counts pods themselves."""


def _amounts(resources: Mapping[str, object]) -> dict[str, int]:
    return {name: _known(name, value) for name, value in resources.items() if isinstance(value, str | int | float)}


def _known(name: str, value: str | int | float) -> int:
    long = len(name) > MAX_REMEMBERED_CHARS or (isinstance(value, str) and len(value) > MAX_REMEMBERED_CHARS)
    return _amount.__wrapped__(name, value) if long else _amount(name, value)


@lru_cache(maxsize=4096, typed=True)
def _amount(name: str, value: str | int | float) -> int:
    """Unreadable quantities count as nothing: the API has refused them long before. A cluster has few different
    ones, and a scheduler reads them again and again."""
    try:
        quantity = parse_quantity(value)
    except QuantityError:
        return 0
    return quantity.milli() if name == "cpu" else quantity.value()


def _added(left: dict[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return left | {name: left.get(name, 0) + amount for name, amount in right.items()}


def _larger(left: dict[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return left | {name: max(left.get(name, 0), amount) for name, amount in right.items()}


def _requests(container: Obj) -> dict[str, int]:
    return _amounts(dig(container, "resources", "requests", default={}))


def requests_of(pod: Obj) -> dict[str, int]:
    """The larger of what the containers need together and what initialization needs at its peak, plus the overhead.

    Sidecars (init containers that restart always) run beside all that start after them. Requests of the pod as a whole
    take the place of those of its containers.
    """
    spec = pod.get("spec") or {}
    running: dict[str, int] = {}
    for container in spec.get("containers") or ():
        running = _added(running, _requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = _added(sidecars, _requests(container))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _added(sidecars, _requests(container)))
    total = _larger(_added(running, sidecars), peak)
    total |= _amounts(dig(spec, "resources", "requests", default={}))
    return _added(total, _amounts(spec.get("overhead") or {}))


def allocatable(node: Obj) -> dict[str, int]:
    """``status.allocatable``, or the capacity where it says nothing."""
    given = dig(node, "status", "allocatable", default=None) or dig(node, "status", "capacity", default={})
    return _amounts(given)


def amounts(listed: Any) -> Iterator[tuple[str, Quantity]]:
    """Readable amounts of a resource list; what cannot be read was refused while decoding."""
    for name, value in listed.items() if isinstance(listed, dict) else ():
        try:
            yield name, parse_quantity(value)
        except QuantityError:
            continue


def asked_together(spec: Obj, key: str) -> dict[str, Quantity]:
    """The exact ``requests`` or ``limits`` (``key``) of all containers at once, or the most that one asks for while the
    pod is initialized (Kubernetes ``resourcehelper.AggregateContainerRequests``)."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        for name, amount in amounts(dig(container, "resources", key)):
            total[name] = total[name] + amount if name in total else amount
    beside: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        for name, amount in amounts(dig(container, "resources", key)):
            at_once = beside[name] + amount if name in beside else amount
            if stays:
                beside[name] = at_once
                total[name] = total[name] + amount if name in total else amount
            if name not in peak or at_once > peak[name]:
                peak[name] = at_once
    for name, amount in peak.items():
        if name not in total or amount > total[name]:
            total[name] = amount
    return total

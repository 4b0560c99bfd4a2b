"""How much a cluster has: sums over its nodes; pure.

Rules: ``pkg/registration/spoke/managedcluster/resource_reconcile.go`` of upstream (reference ocm-pull-model §1.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import Quantity, QuantityError, parse_quantity


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts by resource, printed as Kubernetes prints them."""

    capacity: dict[str, str]
    allocatable: dict[str, str]


def resources_of(nodes: Iterable[Obj]) -> Resources:
    """Return the sums over all nodes; what a cordoned node has is not allocatable. An amount that cannot be read does
    not count."""
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    for node in nodes:
        _add(capacity, dig(node, "status", "capacity"))
        if not dig(node, "spec", "unschedulable"):
            _add(allocatable, dig(node, "status", "allocatable"))
    return Resources(_printed(capacity), _printed(allocatable))


def _add(sums: dict[str, Quantity], amounts: object) -> None:
    for name, text in amounts.items() if isinstance(amounts, dict) else ():
        try:
            amount = parse_quantity(text)
        except (QuantityError, TypeError):
            continue
        known = sums.get(name)
        sums[name] = amount if known is None else known + amount


def _printed(sums: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(sums.items())}

"""Resources of containers and pods: names, integers, limits, claims.

The validators of containers and pods call it with ResourceRequirements. Source: Kubernetes
``validateResourceRequirements`` and ``pkg/apis/core/helper``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import NATURAL, each
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.scheduling.podresources import amounts, asked_together
from syncline.kube.text.quantity import Quantity, QuantityError, parse_quantity

__all__ = [
    "amounts",
    "container_name_causes",
    "is_extended",
    "is_hugepages",
    "is_native",
    "pod_resource_causes",
    "quantity_causes",
    "resource_causes",
    "resource_name_causes",
]

COMPUTE = ("cpu", "ephemeral-storage", "memory")
COUNTED = ("services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "pods")
STANDARD = frozenset(
    (
        *COMPUTE,
        *(f"requests.{name}" for name in (*COMPUTE, "storage")),
        *(f"limits.{name}" for name in COMPUTE),
        *COUNTED,
        "resourcequotas",
        "storage",
        "services.nodeports",
        "services.loadbalancers",
    )
)
INTEGERS = frozenset((*COUNTED, "resourcequotas", "services.nodeports", "services.loadbalancers"))
POD_LEVEL = ("cpu", "hugepages-", "memory")
DOMAIN = "kubernetes.io/"
NameCauses = Callable[[str, str], list[FieldCause]]


def is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Return whether a resource is Kubernetes' own: without a domain, or with one of its domains."""
    return "/" not in name or DOMAIN in name


def is_extended(name: str) -> bool:
    """Return whether a resource is extended, as from a device plug-in."""
    return not (is_native(name) or name.startswith("requests.") or names.qualified_name(f"requests.{name}"))


def resource_name_causes(name: str, path: str) -> list[FieldCause]:
    """Require a name that Kubernetes knows, or one with a domain."""
    causes = [invalid(path, name, problem) for problem in names.qualified_name(name)]
    known = "/" in name or name in STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    if not causes and not known:
        causes.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return causes


def container_name_causes(name: str, path: str) -> list[FieldCause]:
    """Require a resource that containers can request."""
    causes = resource_name_causes(name, path)
    if "/" not in name:
        if name not in COMPUTE and not is_hugepages(name):
            causes.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        causes.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return causes


def _pod_name_causes(name: str, path: str) -> list[FieldCause]:
    causes = resource_name_causes(name, path)
    if not causes and name not in ("cpu", "memory") and not is_hugepages(name):
        causes.append(unsupported(path, name, POD_LEVEL))
    return causes


def quantity_causes(name: str, amount: Quantity, path: str) -> list[FieldCause]:
    """Require a quantity that is not negative, and whole for integer resources."""
    causes = [invalid(path, str(amount), NATURAL)] if amount.nano < 0 else []
    if (name in INTEGERS or is_extended(name)) and not amount.is_whole():
        causes.append(invalid(path, str(amount), "must be an integer"))
    return causes


def resource_causes(
    resources: Any, path: str, claims: Collection[str] = (), check: NameCauses = container_name_causes
) -> list[FieldCause]:
    """Validate limits, requests and claims; ``claims`` are the pod's declared ones."""
    if not isinstance(resources, dict):
        return []
    limits, requests = dict(amounts(resources.get("limits"))), dict(amounts(resources.get("requests")))
    causes: list[FieldCause] = []
    for key, listed in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(listed.items()):
            where = f"{path}.{key}[{name}]"
            causes += check(name, where) + quantity_causes(name, amount, where) + _page_causes(name, amount, where)
    for name, amount in sorted(requests.items()):
        causes += _request_causes(name, amount, limits, path)
    asked = {*limits, *requests}
    if any(map(is_hugepages, asked)) and not asked & {"cpu", "memory"}:
        causes.append(forbidden(path, "HugePages require cpu or memory"))
    return causes + _claim_causes(resources, path, claims)


def _page_causes(name: str, amount: Quantity, where: str) -> list[FieldCause]:
    if not is_hugepages(name):
        return []
    try:
        page = parse_quantity(name.removeprefix("hugepages-"))
    except QuantityError:
        page = None
    if page is not None and page.nano > 0 and page.is_whole() and amount.value() % page.value() == 0:
        return []
    return [invalid(where, str(amount), f"{amount} is not positive integer multiple of {name}")]


def _request_causes(name: str, amount: Quantity, limits: Mapping[str, Quantity], path: str) -> list[FieldCause]:
    """Require a request at most as large as its limit; equal for resources that cannot be overcommitted."""
    limit, shared = limits.get(name), is_native(name) and not is_hugepages(name)
    if limit is None:
        why = "Limit must be set for non overcommitable resources"
        return [] if shared else [required(f"{path}.limits", why)]
    if not shared and amount != limit:
        return [invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limit}")]
    if amount > limit:
        return [invalid(f"{path}.requests", str(amount), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claim_causes(resources: Obj, path: str, declared: Collection[str]) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for at, claim in each(resources, "claims", path):
        name, request = str(claim.get("name") or ""), claim.get("request")
        if not name:
            causes.append(required(at))
            continue
        if name in seen:
            causes.append(duplicate(at, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                causes += [invalid(f"{at}.request", request, problem) for problem in names.dns_label(request)]
            if key in seen:
                causes.append(duplicate(at, key))
            elif not request:
                causes += [duplicate(at, name) for other in seen if other.startswith(f"{name}/")]
            seen.add(key)
        if name not in declared:
            listed = ": " + ", ".join(sorted(declared)) if declared else " which is empty"
            why = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{listed}'
            causes.append(FieldCause("FieldValueNotFound", why, at))
    return causes


# --- the pod as a whole --------------------------------------------------------------------------------------------


def pod_resource_causes(spec: Obj, path: str, claims: Collection[str]) -> list[FieldCause]:
    """Validate ``spec.resources``, the pod's total, against its containers' requests."""
    resources, where = spec.get("resources"), f"{path}.resources"
    if not isinstance(resources, dict):
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(where, "may not be set for a windows pod")]
    causes: list[FieldCause] = []
    if resources.get("claims") is not None:
        causes.append(forbidden(f"{where}.claims", "claims may not be set for Resources at pod-level"))
    causes += resource_causes(resources, where, claims, _pod_name_causes)
    return causes + _share_causes(spec, resources, where)


def _share_causes(spec: Obj, resources: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    limits, requests = dict(amounts(resources.get("limits"))), dict(amounts(resources.get("requests")))
    for name, needed in sorted(asked_together(spec, "requests").items()):
        if name in requests and needed > requests[name]:
            why = f"must be greater than or equal to aggregate container requests of {needed}"
            causes.append(invalid(f"{where}.requests[{name}]", str(requests[name]), why))
    for name, needed in sorted(asked_together(spec, "limits").items()):
        if is_hugepages(name) and name in limits and needed > limits[name]:
            why = f"must be greater than or equal to aggregate container limits of {needed}"
            causes.append(invalid(f"{where}.limits[{name}]", str(limits[name]), why))
    for at, container in each(spec, "containers", where):
        for name, limit in sorted(amounts((container.get("resources") or {}).get("limits"))):
            if name in limits and limit > limits[name]:
                why = f"must be less than or equal to pod limits of {limits[name]}"
                causes.append(invalid(f"{at}[{name}].limits", str(limit), why))
    return causes

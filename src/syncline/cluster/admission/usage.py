"""Compute what one object counts against a ResourceQuota.

The quota admission and the quota controller call it, so that both count alike. Pure. Rules: Kubernetes
``pkg/quota/v1/evaluator/core``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import Quantity, QuantityError, from_int, parse_quantity

COMPUTE = ("cpu", "memory", "ephemeral-storage")
REQUIRED = ("cpu", "memory")
"""Resources that every container must request if a quota limits them; ephemeral storage is optional."""
_COUNTED = frozenset(
    {
        "/configmaps",
        "/persistentvolumeclaims",
        "/pods",
        "/replicationcontrollers",
        "/resourcequotas",
        "/secrets",
        "/services",
    }
)
"""Kinds that are also counted under their plural alone."""

Amounts = dict[str, Quantity]


def amounts(given: object) -> Amounts:
    """Return a resource list without entries that cannot be parsed."""
    found: Amounts = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        try:
            found[str(name)] = parse_quantity(value)
        except (QuantityError, TypeError):
            continue  # Validation refuses it, earlier or later.
    return found


def total(parts: Iterable[Amounts]) -> Amounts:
    summed: Amounts = {}
    for part in parts:
        for name, value in part.items():
            summed[name] = summed[name] + value if name in summed else value
    return summed


def _largest(parts: Iterable[Amounts]) -> Amounts:
    most: Amounts = {}
    for part in parts:
        for name, value in part.items():
            if name not in most or value > most[name]:
                most[name] = value
    return most


def pod_amounts(pod: Obj, kind: str) -> Amounts:
    """Return a Pod's requests or limits: its containers' sum or its largest init container, plus overhead."""
    spec = pod.get("spec") or {}
    running = [amounts(dig(c, "resources", kind)) for c in spec.get("containers") or ()]
    initial: list[Amounts] = []
    for container in spec.get("initContainers") or ():
        own = amounts(dig(container, "resources", kind))
        if container.get("restartPolicy") == "Always":
            running.append(own)
        else:
            initial.append(own)
    needed = _largest([total(running), *initial])
    return total([needed, amounts(spec.get("overhead"))]) if spec.get("overhead") else needed


def usage_of(storage: str, obj: Obj) -> Amounts:
    """Return an object's usage by quota resource name. ``storage`` is ``apps/deployments``, ``/pods``."""
    if storage == "/pods" and dig(obj, "status", "phase") in ("Succeeded", "Failed"):
        return {f"count/{_counted_name(storage)}": from_int(1)}
    used: Amounts = {f"count/{_counted_name(storage)}": from_int(1)}
    if storage in _COUNTED:
        used[storage.lstrip("/")] = from_int(1)
    if storage == "/pods":
        used |= _pod_usage(obj)
    elif storage == "/services":
        used |= _service_usage(obj)
    elif storage == "/persistentvolumeclaims":
        used |= _claim_usage(obj)
    return used


def _counted_name(storage: str) -> str:
    group, _, plural = storage.partition("/")
    return f"{plural}.{group}" if group else plural


def _pod_usage(pod: Obj) -> Amounts:
    used: Amounts = {}
    requests, limits = pod_amounts(pod, "requests"), pod_amounts(pod, "limits")
    for name, value in requests.items():
        used[f"requests.{name}"] = value
        if name in COMPUTE:
            used[name] = value
    for name, value in limits.items():
        if name in COMPUTE:
            used[f"limits.{name}"] = value
    return used


def _service_usage(service: Obj) -> Amounts:
    spec = service.get("spec") or {}
    kind, ports = spec.get("type"), spec.get("ports") or []
    used: Amounts = {}
    if kind == "NodePort":
        used["services.nodeports"] = from_int(len(ports))
    elif kind == "LoadBalancer":
        used["services.loadbalancers"] = from_int(1)
        with_ports = spec.get("allocateLoadBalancerNodePorts") is not False
        count = len(ports) if with_ports else sum(1 for port in ports if port.get("nodePort"))
        used["services.nodeports"] = from_int(count)
    return used


def _claim_usage(claim: Obj) -> Amounts:
    storage = amounts(dig(claim, "spec", "resources", "requests")).get("storage")
    used: Amounts = {} if storage is None else {"requests.storage": storage}
    name = dig(claim, "spec", "storageClassName")
    if name:
        prefix = f"{name}.storageclass.storage.k8s.io"
        used[f"{prefix}/persistentvolumeclaims"] = from_int(1)
        if storage is not None:
            used[f"{prefix}/requests.storage"] = storage
    return used


def missing_amounts(pod: Obj, hard: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return (quota resource, containers that do not specify it), for resources that a quota limits."""
    spec = pod.get("spec") or {}
    found = []
    for resource in sorted(hard):
        kind, _, name = resource.partition(".") if "." in resource else ("requests", "", resource)
        if kind not in ("requests", "limits") or name not in REQUIRED:
            continue
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        silent = sorted(str(c.get("name")) for c in containers if name not in amounts(dig(c, "resources", kind)))
        if silent:
            found.append((resource, silent))
    return found


# --- scopes --------------------------------------------------------------------------------------------------------


def in_scope(quota: Obj, storage: str, obj: Obj) -> bool:
    """Return whether a quota's scopes include this object; scopes apply only to Pods."""
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    selectors += dig(spec, "scopeSelector", "matchExpressions", default=[])
    if not selectors:
        return True
    return storage == "/pods" and all(_matches(selector, obj) for selector in selectors)


def _matches(selector: Obj, pod: Obj) -> bool:
    spec = pod.get("spec") or {}
    ends = spec.get("activeDeadlineSeconds") is not None
    match selector.get("scopeName"):
        case "Terminating":
            return ends
        case "NotTerminating":
            return not ends
        case "BestEffort":
            return _best_effort(pod)
        case "NotBestEffort":
            return not _best_effort(pod)
        case "PriorityClass":
            return _matches_class(selector, spec.get("priorityClassName") or "")
        case _:
            return False


def _matches_class(selector: Obj, name: str) -> bool:
    values = selector.get("values") or []
    match selector.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _best_effort(pod: Obj) -> bool:
    return not pod_amounts(pod, "requests") and not pod_amounts(pod, "limits")

"""Nodes, namespaces, configuration, services and events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.columns.column import NONE, UNKNOWN, age, labels_text, selector_text, since
from syncline.kube.objects import Obj, dig, name_of

MAX_SHOWN = 3
"""Entries of a list that a cell shows before ``+ N more...``."""


def _namespace(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), dig(obj, "status", "phase", default=""), age(obj, now)]


def _config_map(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _account(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


# --- nodes ---------------------------------------------------------------------------------------------------------

_ROLE = "node-role.kubernetes.io/"


def _node(obj: Obj, now: datetime) -> list[Any]:
    info = dig(obj, "status", "nodeInfo", default={})
    addresses = dig(obj, "status", "addresses", default=[])
    return [
        name_of(obj),
        _node_status(obj),
        ",".join(_roles(obj)) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(addresses, "InternalIP"),
        _address(addresses, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(obj: Obj) -> str:
    conditions = {c.get("type"): c for c in dig(obj, "status", "conditions", default=[])}
    ready = conditions.get("Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if dig(obj, "spec", "unschedulable") else status


def _roles(obj: Obj) -> list[str]:
    labels = dig(obj, "metadata", "labels", default={})
    roles = {label[len(_ROLE) :] for label in labels if label.startswith(_ROLE) and label != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return sorted(roles)


def _address(addresses: list[Obj], kind: str) -> str:
    return next((str(a["address"]) for a in addresses if a.get("type") == kind), NONE)


# --- services ------------------------------------------------------------------------------------------------------


def _service(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or []
    return [
        name_of(obj),
        spec.get("type", ""),
        addresses[0] if addresses else spec.get("clusterIP") or NONE,
        _external(spec, obj.get("status") or {}),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        labels_text(spec.get("selector")),
    ]


def _external(spec: Obj, status: Obj) -> str:
    kind, extra = spec.get("type"), list(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        return str(spec.get("externalName") or "")
    if kind == "LoadBalancer":
        ingress = dig(status, "loadBalancer", "ingress", default=[])
        found = sorted({str(point.get("ip") or point.get("hostname")) for point in ingress})
        return ",".join([*found, *extra]) or "<pending>"
    return ",".join(extra) or NONE


def _port(port: Obj) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _endpoints(obj: Obj, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        ports = subset.get("ports") or [{}]
        for port in ports:
            for address in subset.get("addresses") or ():
                found.append(f"{address['ip']}:{port['port']}" if port.get("port") else str(address["ip"]))
    return [name_of(obj), _first(found), age(obj, now)]


def _first(found: list[str]) -> str:
    if not found:
        return NONE
    more = len(found) - MAX_SHOWN
    shown = ",".join(found[:MAX_SHOWN])
    return f"{shown} + {more} more..." if more > 0 else shown


def _slice(obj: Obj, now: datetime) -> list[Any]:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or ()]
    addresses = [str(a) for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    shown_ports = _first(ports) if ports else "<unset>"
    return [
        name_of(obj),
        obj.get("addressType", ""),
        shown_ports,
        _first(addresses) if addresses else "<unset>",
        age(obj, now),
    ]


# --- ingress and policies ------------------------------------------------------------------------------------------


def _ingress(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    hosts = [str(rule["host"]) for rule in spec.get("rules") or () if rule.get("host")]
    points = dig(obj, "status", "loadBalancer", "ingress", default=[])
    return [
        name_of(obj),
        spec.get("ingressClassName")
        or dig(obj, "metadata", "annotations", "kubernetes.io/ingress.class", default=NONE),
        _first(hosts) if hosts else "*",
        ",".join(str(point.get("ip") or point.get("hostname")) for point in points),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _ingress_class(obj: Obj, now: datetime) -> list[Any]:
    parameters = dig(obj, "spec", "parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind')}{group}/{parameters.get('name')}"
    return [name_of(obj), dig(obj, "spec", "controller", default=""), shown, age(obj, now)]


def _network_policy(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), selector_text(dig(obj, "spec", "podSelector", default={})), age(obj, now)]


# --- events --------------------------------------------------------------------------------------------------------


def _event(obj: Obj, now: datetime) -> list[Any]:
    core = _as_core_event(obj)
    first = core.get("firstTimestamp") or core.get("eventTime")
    series = core.get("series") or {}
    last = series.get("lastObservedTime") or core.get("lastTimestamp")
    count = series.get("count") or core.get("count") or (1 if not core.get("firstTimestamp") else 0)
    involved, source = core.get("involvedObject") or {}, core.get("source") or {}
    component = source.get("component") or core.get("reportingComponent") or ""
    host = source.get("host") or core.get("reportingInstance") or ""
    return [
        since(last, now) if last else since(first, now),
        core.get("type", ""),
        core.get("reason", ""),
        f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        str(core.get("message", "")).strip(),
        since(first, now),
        count,
        name_of(obj),
    ]


def _as_core_event(obj: Obj) -> Obj:
    names = {
        "note": "message",
        "regarding": "involvedObject",
        "reportingController": "reportingComponent",
        "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    }
    return {names.get(key, key): value for key, value in obj.items()}


TABLES = {
    ("", "Namespace"): _namespace,
    ("", "ConfigMap"): _config_map,
    ("", "Secret"): _secret,
    ("", "ServiceAccount"): _account,
    ("", "Node"): _node,
    ("", "Service"): _service,
    ("", "Endpoints"): _endpoints,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("", "Event"): _event,
    ("events.k8s.io", "Event"): _event,
}

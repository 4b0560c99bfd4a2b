"""Kinds whose tables show one or two fields: devices, addresses, API services and Scale."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.columns.column import NONE, Row, age
from syncline.kube.objects import Obj, dig, name_of

_RESOURCE, _NETWORK = "resource.k8s.io", "networking.k8s.io"


def _plain(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def _claim(obj: Obj, now: datetime) -> list[Any]:
    gone, allocated = dig(obj, "metadata", "deletionTimestamp"), dig(obj, "status", "allocation")
    states = ["deleted"] if gone else []
    if allocated:
        states += ["allocated"] + (["reserved"] if dig(obj, "status", "reservedFor") else [])
    elif not gone:
        states = ["pending"]
    return [name_of(obj), ",".join(states), age(obj, now)]


def _slice(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    pool = dig(spec, "pool", "name", default="")
    return [name_of(obj), spec.get("nodeName") or "", spec.get("driver", ""), pool, age(obj, now)]


def _address(obj: Obj, now: datetime) -> list[Any]:
    """Return one cell more than there are columns, as upstream does."""
    parent = dig(obj, "spec", "parentRef", default={})
    kind = ".".join(part for part in (parent.get("resource"), parent.get("group")) if part).lower()
    shown = "/".join(part for part in (kind, parent.get("namespace"), parent.get("name")) if part) if parent else NONE
    return [name_of(obj), shown, age(obj, now)]


def _cidr(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), ",".join(dig(obj, "spec", "cidrs", default=[])), age(obj, now)]


def _service(obj: Obj, now: datetime) -> list[Any]:
    service = dig(obj, "spec", "service")
    shown = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    found: Obj = next((c for c in dig(obj, "status", "conditions", default=[]) if c.get("type") == "Available"), {})
    state = str(found.get("status", "Unknown"))
    reason = f" ({found['reason']})" if state != "True" and found.get("reason") else ""
    return [name_of(obj), shown, state + reason, age(obj, now)]


def _scale(obj: Obj, now: datetime) -> list[Any]:
    wanted, there = dig(obj, "spec", "replicas", default=0), dig(obj, "status", "replicas", default=0)
    return [name_of(obj), wanted, there, age(obj, now)]


TABLES: dict[tuple[str, str], Row] = {
    (_RESOURCE, "DeviceClass"): _plain,
    (_RESOURCE, "ResourceClaim"): _claim,
    (_RESOURCE, "ResourceClaimTemplate"): _plain,
    (_RESOURCE, "ResourceSlice"): _slice,
    (_NETWORK, "IPAddress"): _address,
    (_NETWORK, "ServiceCIDR"): _cidr,
    ("apiregistration.k8s.io", "APIService"): _service,
    ("autoscaling", "Scale"): _scale,
}

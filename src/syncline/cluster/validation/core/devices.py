"""Devices that pods can claim: classes, claims, claim templates, and drivers' resource slices.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/resource/validation``. Schedulers and drivers write allocations, which are not validated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import duplicate, invalid, required, too_long, too_many
from syncline.cluster.validation.engine.metadata import (
    annotation_causes,
    label_causes,
    metadata_causes,
    metadata_update_causes,
)
from syncline.cluster.validation.pods.resources import is_extended
from syncline.cluster.validation.policy.admissionrules import Fault, device_fault
from syncline.cluster.validation.storage.volumes import driver_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

MOST_ENTRIES = 32
"""Limit of requests, constraints, configurations or selectors in one list."""
MOST_SUBREQUESTS, MOST_DEVICES, MOST_PROPERTIES = 8, 128, 32
LONGEST_EXPRESSION, LONGEST_PARAMETERS = 10 * 1024, 10 * 1024
LONGEST_IDENTIFIER, LONGEST_VALUE = 32, 64
PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
ATTRIBUTE_VALUES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)


def _bounded(key: str, *rules: r.Rule, most: int = MOST_ENTRIES, named: bool = False) -> r.Rule:
    """Validate the entries of a list, unless there are too many. ``named``: names must be unique."""
    entries = r.every(r.each(key, *rules), *([r.each(key, r.unique("name", at=""))] if named else []))

    def judge(owner: Any, path: str) -> list[FieldCause]:
        found = len(owner.get(key) or ())
        return [too_many(f"{path}.{key}", found, most)] if found > most else entries(owner, path)

    return judge


# --- parts of claims and classes -----------------------------------------------------------------------------------


def _expression_causes(selector: Obj, path: str) -> Iterator[FieldCause]:
    cel, where = selector.get("cel"), f"{path}.cel.expression"
    text = str((cel or {}).get("expression") or "")
    fault: Fault | None = None
    if cel is None:
        yield required(f"{path}.cel")
    elif len(text.encode()) > LONGEST_EXPRESSION:
        yield too_long(where, LONGEST_EXPRESSION)
    else:
        fault = device_fault(text)
    if fault is not None and fault.internal:
        yield FieldCause("InternalError", f"Internal error: {fault.detail}", where)
    elif fault is not None:
        yield invalid(where, text, fault.detail)


def _parameter_causes(opaque: Obj, path: str) -> Iterator[FieldCause]:
    parameters = opaque.get("parameters")
    if parameters is None:
        yield required(path)
    elif len(json.dumps(parameters, ensure_ascii=False, separators=(",", ":")).encode()) > LONGEST_PARAMETERS:
        yield too_long(path, LONGEST_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


_SELECTORS = _bounded("selectors", _expression_causes)
_CONFIGURATION = r.every(
    r.demand(r.lacks("opaque"), "opaque"),
    r.field(
        "opaque",
        r.always("driver", driver_name_causes),
        lambda opaque, path: _parameter_causes(opaque, f"{path}.parameters"),
    ),
)


def _toleration_value(toleration: Obj, path: str) -> Iterable[FieldCause]:
    operator, value = toleration.get("operator"), str(toleration.get("value") or "")
    if operator == "Exists" and value:
        return [invalid(path, value, "must be empty for operator `Exists`")]
    return [invalid(path, value, one) for one in names.label_value(value)] if operator == "Equal" else []


_WANTED = r.every(
    r.need("deviceClassName", r.subdomain),
    _SELECTORS,
    r.text("allocationMode", r.choice("All", "ExactCount")),
    r.refuse(
        lambda one: one.get("allocationMode") == "All" and one.get("count"),
        "count",
        "must not be specified when allocationMode is 'All'",
    ),
    r.refuse(
        lambda one: one.get("allocationMode") == "ExactCount" and (one.get("count") or 0) <= 0,
        "count",
        "must be greater than zero",
        0,
    ),
    r.each(
        "tolerations",
        r.filled("key", r.qualified),
        r.need("operator", r.choice("Equal", "Exists")),
        lambda toleration, path: _toleration_value(toleration, f"{path}.value"),
        r.filled("effect", r.choice("NoExecute", "NoSchedule", "None")),
    ),
)
_NAME = r.text("name", r.label)


def _either(request: Obj, path: str) -> Iterable[FieldCause]:
    exactly, first = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not first:
        return [required(path, ONE_REQUEST)]
    if exactly is not None and first:
        return [invalid(path, None, f"{ONE_REQUEST}, but multiple fields are set")]
    return _REQUESTED(request, path)


_REQUESTED = r.every(
    r.field("exactly", _WANTED),
    _bounded("firstAvailable", _NAME, _WANTED, most=MOST_SUBREQUESTS, named=True),
)
_REQUESTS = _bounded("requests", _NAME, _either, named=True)


def _claim_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    devices, where = spec.get("devices") or {}, f"{path}.devices"
    known: set[str] = set()
    for request in r.list_of(devices, "requests"):
        name = str(request.get("name") or "")
        known |= {name, *(f"{name}/{one.get('name')}" for one in r.list_of(request, "firstAvailable"))}
    references = partial(_reference_causes, known=known)
    yield from _REQUESTS(devices, where)
    yield from _bounded("constraints", references, _constraint_causes)(devices, where)
    yield from _bounded("config", references, _CONFIGURATION)(devices, where)


def _constraint_causes(constraint: Obj, path: str) -> Iterable[FieldCause]:
    for key in ("matchAttribute", "distinctAttribute"):
        if constraint.get(key) is not None:
            return _full_name_causes(str(constraint[key]), f"{path}.{key}")
    return [required(path, ONE_ATTRIBUTE)]


def _reference_causes(owner: Obj, path: str, known: set[str]) -> Iterator[FieldCause]:
    listed = owner.get("requests") or []
    if len(listed) > MOST_ENTRIES:
        yield too_many(f"{path}.requests", len(listed), MOST_ENTRIES)
        return
    for index, name in enumerate(listed):
        where, parts = f"{path}.requests[{index}]", str(name).split("/")
        for part in parts if len(parts) < 3 else ():
            yield from r.label(part, where)
        if name not in known:
            yield invalid(where, name, UNKNOWN_REQUEST)
        if name in listed[:index]:
            yield duplicate(where, name)


_IDENTIFIER = r.every(r.most(LONGEST_IDENTIFIER), r.named(names.c_identifier))


def _name_causes(name: str, path: str) -> Iterator[FieldCause]:
    """Validate ``name`` or ``domain/name``, with a C identifier as name. Kubernetes ignores further parts."""
    domain, slash, rest = name.partition("/")
    if not slash:
        yield from _IDENTIFIER(name, path)
    elif "/" not in rest:
        yield from driver_name_causes(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
        yield from _IDENTIFIER(rest, path) if rest else [invalid(path, "", "the name must not be empty")]


def _full_name_causes(name: str, path: str) -> Iterator[FieldCause]:
    yield from _name_causes(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


# --- classes and claims --------------------------------------------------------------------------------------------


class DeviceClassKind(Kind):
    has_generation = True
    namespaced = False
    rules = r.spec(
        _SELECTORS,
        _bounded("config", _CONFIGURATION),
        r.field("extendedResourceName", r.must(is_extended, "must be a valid extended resource name")),
    )


class ResourceClaimKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True
    revalidates = False
    rules = r.spec(_claim_causes)
    fixed = ("spec",)

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_causes(new, names.dns_subdomain, namespaced=True) + super().update_causes(new, old)

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old)


class ResourceClaimTemplateKind(Kind):
    fixed = ("spec",)
    rules = r.spec(
        r.part("metadata", r.field("annotations", annotation_causes), r.field("labels", label_causes)),
        r.spec(_claim_causes),
    )


# --- slices --------------------------------------------------------------------------------------------------------


def _placed(places: tuple[str, ...], empty: str, missing: str, many: str) -> r.Table:
    """Require exactly one of the fields that locate devices."""

    def count(holder: Obj, path: str) -> Iterable[FieldCause]:
        given = [f"`{key}`" for key in places if holder.get(key)]
        if given:
            return [invalid(path, f"{{{', '.join(given)}}}", many)] if len(given) > 1 else []
        return [required(path, missing)]

    return r.every(
        r.field("nodeName", r.must(bool, empty)),
        r.filled("nodeName", r.subdomain),
        *(
            r.field(key, r.must(bool, "must be either unset or set to true"))
            for key in places
            if key in ("allNodes", "perDeviceNodeSelection")
        ),
        count,
    )


_DEVICE_PLACE = _placed(PLACES[:3], "must not be empty", ONE_DEVICE_PLACE, ONE_DEVICE_PLACE)


def _pool_name(name: str, path: str) -> Iterable[FieldCause]:
    return [cause for part in name.split("/") for cause in r.subdomain(part, path)]


def _property_causes(device: Obj, path: str) -> Iterator[FieldCause]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    found = len(attributes) + len(capacity)
    if found > MOST_PROPERTIES:
        why = f"the total number of attributes and capacities must not exceed {MOST_PROPERTIES}"
        yield invalid(path, found, why)
    for name, attribute in attributes.items():
        yield from _name_causes(str(name), f"{path}.attributes")
        yield from _ATTRIBUTE(attribute or {}, f"{path}.attributes[{name}]")
    for name in capacity:
        yield from _name_causes(str(name), f"{path}.capacity")


def _one_value(attribute: Obj, path: str) -> Iterable[FieldCause]:
    given = sum(attribute.get(key) is not None for key in ATTRIBUTE_VALUES)
    return [] if given == 1 else [invalid(path, attribute if given else "", "exactly one value must be specified")]


_TEXT = r.most(LONGEST_VALUE)
_VERSION = r.every(r.must(SEMVER.fullmatch, "must be a string compatible with semver.org spec 2.0.0"), _TEXT)
_ATTRIBUTE = r.every(
    r.field("string", _TEXT),
    r.items("strings", _TEXT),
    r.field("version", _VERSION),
    r.items("versions", _VERSION),
    _one_value,
)


def _device_list(spec: Obj, path: str) -> Iterable[FieldCause]:
    placed = spec.get("perDeviceNodeSelection") is True
    unplaced = lambda device, at: [invalid(at, None, NO_DEVICE_PLACE)] if r.has(*PLACES[:3])(device) else []  # noqa: E731
    return _bounded(
        "devices", _NAME, _DEVICE_PLACE if placed else unplaced, _property_causes, most=MOST_DEVICES, named=True
    )(spec, path)


class ResourceSliceKind(Kind):
    has_generation = True
    namespaced = False
    rules = r.spec(
        r.always("driver", driver_name_causes),
        r.part(
            "pool",
            r.need("name", _pool_name),
            r.number("resourceSliceCount", r.at_least(1, "must be greater than zero")),
            r.number("generation", r.at_least(0, "must be greater than or equal to zero")),
        ),
        _placed(
            PLACES,
            "must be either unset or set to a non-empty string",
            ONE_PLACE,
            f"{ONE_PLACE}, but multiple fields are set",
        ),
        lambda spec, path: (
            [invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")]
            if spec.get("sharedCounters") is not None and spec.get("devices") is not None
            else []
        ),
        _device_list,
    )
    fixed = ("spec.driver", "spec.nodeName", "spec.pool.name")

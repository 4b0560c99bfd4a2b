"""Devices that pods may claim: classes, claims and their templates, and the slices in which drivers list devices.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/resource/validation``. What is allocated is written by schedulers and drivers and taken as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import (
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from syncline.cluster.validation.engine.fields import each, immutable
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

__all__ = ["DeviceClassKind", "ResourceClaimKind", "ResourceClaimTemplateKind", "ResourceSliceKind"]

MOST_ENTRIES = 32
"""Requests, constraints, configurations and selectors of one list."""
MOST_SUBREQUESTS = 8
MOST_DEVICES = 128
MOST_PROPERTIES = 32
LONGEST_EXPRESSION = 10 * 1024
LONGEST_PARAMETERS = 10 * 1024
LONGEST_IDENTIFIER = 32
LONGEST_VALUE = 64
MODES = ("All", "ExactCount")
OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoExecute", "NoSchedule", "None")
PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
ATTRIBUTE_VALUES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
IMMUTABLE = "field is immutable"
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


class DeviceClassKind(Kind):
    has_generation = True
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _selector_causes(spec, "spec")
        causes += _bounded(spec, "config", "spec", _configuration_causes)
        name = spec.get("extendedResourceName")
        if name is not None and not is_extended(str(name)):
            causes.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
        return causes


class ResourceClaimKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True
    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return _claim_causes(spec_of(obj), "spec")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_causes(new, names.dns_subdomain, namespaced=True) + metadata_update_causes(new, old)
        return causes + _spec_fixed(new, old)

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old)


class ResourceClaimTemplateKind(Kind):
    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        given = spec.get("metadata") or {}
        causes = annotation_causes(given.get("annotations"), "spec.metadata.annotations")
        causes += label_causes(given.get("labels"), "spec.metadata.labels")
        return causes + _claim_causes(spec.get("spec") or {}, "spec.spec")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + _spec_fixed(new, old)


def _spec_fixed(new: Obj, old: Obj) -> list[FieldCause]:
    return [] if new.get("spec") == old.get("spec") else [invalid("spec", new.get("spec"), IMMUTABLE)]


# --- claims --------------------------------------------------------------------------------------------------------


def _bounded(
    owner: Obj, key: str, path: str, judge: Callable[[Obj, str], list[FieldCause]], most: int = MOST_ENTRIES
) -> list[FieldCause]:
    """The entries of a list, which are not looked at when there are too many."""
    found = owner.get(key) or []
    if len(found) > most:
        return [too_many(f"{path}.{key}", len(found), most)]
    return [cause for where, entry in each(owner, key, path) for cause in judge(entry, where)]


def _unique(owner: Obj, key: str, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for where, entry in each(owner, key, path):
        name = str(entry.get("name") or "")
        if name in seen:
            causes.append(duplicate(where, name))
        seen.add(name)
    return causes


def _claim_causes(spec: Obj, path: str) -> list[FieldCause]:
    devices, where = spec.get("devices") or {}, f"{path}.devices"
    known: set[str] = set()
    for _, request in each(devices, "requests", where):
        name = str(request.get("name") or "")
        known |= {name, *(f"{name}/{one.get('name')}" for _, one in each(request, "firstAvailable", ""))}
    causes = _bounded(devices, "requests", where, _request_causes)
    if len(devices.get("requests") or ()) <= MOST_ENTRIES:
        causes += _unique(devices, "requests", where)

    def constraint_causes(constraint: Obj, at: str) -> list[FieldCause]:
        found = _reference_causes(constraint, at, known)
        for key in ("matchAttribute", "distinctAttribute"):
            if constraint.get(key) is not None:
                return found + _full_name_causes(str(constraint[key]), f"{at}.{key}")
        return [*found, required(at, ONE_ATTRIBUTE)]

    def configuration_causes(config: Obj, at: str) -> list[FieldCause]:
        return _reference_causes(config, at, known) + _configuration_causes(config, at)

    causes += _bounded(devices, "constraints", where, constraint_causes)
    return causes + _bounded(devices, "config", where, configuration_causes)


def _label(name: Any, path: str) -> list[FieldCause]:
    return [invalid(path, name or "", problem) for problem in names.dns_label(str(name or ""))]


def _reference_causes(owner: Obj, path: str, known: set[str]) -> list[FieldCause]:
    listed = owner.get("requests") or []
    if len(listed) > MOST_ENTRIES:
        return [too_many(f"{path}.requests", len(listed), MOST_ENTRIES)]
    causes: list[FieldCause] = []
    for index, name in enumerate(listed):
        where = f"{path}.requests[{index}]"
        parts = str(name).split("/")
        causes += [cause for part in parts for cause in _label(part, where)] if len(parts) < 3 else []
        if name not in known:
            causes.append(invalid(where, name, UNKNOWN_REQUEST))
        if name in listed[:index]:
            causes.append(duplicate(where, name))
    return causes


def _request_causes(request: Obj, path: str) -> list[FieldCause]:
    causes = _label(request.get("name"), f"{path}.name")
    exactly, first = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not first:
        return [*causes, required(path, ONE_REQUEST)]
    if exactly is not None and first:
        return [*causes, invalid(path, None, f"{ONE_REQUEST}, but multiple fields are set")]
    if exactly is not None:
        return causes + _wanted_causes(exactly, f"{path}.exactly")
    causes += _bounded(request, "firstAvailable", path, _subrequest_causes, MOST_SUBREQUESTS)
    return causes + (_unique(request, "firstAvailable", path) if len(first or ()) <= MOST_SUBREQUESTS else [])


def _subrequest_causes(request: Obj, path: str) -> list[FieldCause]:
    return _label(request.get("name"), f"{path}.name") + _wanted_causes(request, path)


def _wanted_causes(wanted: Obj, path: str) -> list[FieldCause]:
    of, where = str(wanted.get("deviceClassName") or ""), f"{path}.deviceClassName"
    causes = [invalid(where, of, problem) for problem in names.dns_subdomain(of)] if of else [required(where)]
    causes += _selector_causes(wanted, path)
    mode, count = str(wanted.get("allocationMode") or ""), int(wanted.get("count") or 0)
    if mode not in MODES:
        causes.append(unsupported(f"{path}.allocationMode", mode, MODES))
    elif mode == "All" and count:
        causes.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        causes.append(invalid(f"{path}.count", count, "must be greater than zero"))
    for at, toleration in each(wanted, "tolerations", path):
        causes += _toleration_causes(toleration, at)
    return causes


def _toleration_causes(toleration: Obj, path: str) -> list[FieldCause]:
    key, value = str(toleration.get("key") or ""), str(toleration.get("value") or "")
    operator, effect = str(toleration.get("operator") or ""), str(toleration.get("effect") or "")
    causes = [invalid(f"{path}.key", key, problem) for problem in names.qualified_name(key)] if key else []
    if not operator:
        causes.append(required(f"{path}.operator"))
    elif operator not in OPERATORS:
        causes.append(unsupported(f"{path}.operator", operator, OPERATORS))
    elif operator == "Exists" and value:
        causes.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        causes += [invalid(f"{path}.value", value, problem) for problem in names.label_value(value)]
    if effect and effect not in EFFECTS:
        causes.append(unsupported(f"{path}.effect", effect, EFFECTS))
    return causes


def _selector_causes(owner: Obj, path: str) -> list[FieldCause]:
    return _bounded(owner, "selectors", path, _expression_causes)


def _expression_causes(selector: Obj, path: str) -> list[FieldCause]:
    cel, where = selector.get("cel"), f"{path}.cel.expression"
    if cel is None:
        return [required(f"{path}.cel")]
    text = str(cel.get("expression") or "")
    if len(text.encode()) > LONGEST_EXPRESSION:
        return [too_long(where, LONGEST_EXPRESSION)]
    fault: Fault | None = device_fault(text)
    if fault is None:
        return []
    if fault.internal:
        return [FieldCause("InternalError", f"Internal error: {fault.detail}", where)]
    return [invalid(where, text, fault.detail)]


def _configuration_causes(config: Obj, path: str) -> list[FieldCause]:
    opaque, where = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        return [required(where)]
    causes = driver_name_causes(opaque.get("driver"), f"{where}.driver")
    parameters, where = opaque.get("parameters"), f"{where}.parameters"
    if parameters is None:
        return [*causes, required(where)]
    if len(json.dumps(parameters, ensure_ascii=False, separators=(",", ":")).encode()) > LONGEST_PARAMETERS:
        return [*causes, too_long(where, LONGEST_PARAMETERS)]
    if not isinstance(parameters, dict):
        return [*causes, invalid(where, "<value omitted>", "must be a valid JSON object")]
    return causes


def _name_causes(name: str, path: str) -> list[FieldCause]:
    """``name`` or ``domain/name``, the name an identifier of C."""
    domain, slash, rest = name.partition("/")
    if not slash:
        return _identifier_causes(name, path)
    if "/" in rest:
        return []  # Kubernetes does not look at these.
    causes = driver_name_causes(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    return causes + (_identifier_causes(rest, path) if rest else [invalid(path, "", "the name must not be empty")])


def _identifier_causes(name: str, path: str) -> list[FieldCause]:
    causes = [too_long(path, LONGEST_IDENTIFIER)] if len(name) > LONGEST_IDENTIFIER else []
    return causes + [invalid(path, name, problem) for problem in names.c_identifier(name)]


def _full_name_causes(name: str, path: str) -> list[FieldCause]:
    causes = _name_causes(name, path)
    if "/" not in name:
        causes.append(invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash"))
    return causes


# --- slices --------------------------------------------------------------------------------------------------------


class ResourceSliceKind(Kind):
    has_generation = True
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = driver_name_causes(spec.get("driver"), "spec.driver")
        causes += _pool_causes(spec.get("pool") or {}, "spec.pool") + _place_causes(spec)
        if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
            causes.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
        judge = partial(_device_causes, placed=spec.get("perDeviceNodeSelection") is True)
        causes += _bounded(spec, "devices", "spec", judge, MOST_DEVICES)
        return causes + (_unique(spec, "devices", "spec") if len(spec.get("devices") or ()) <= MOST_DEVICES else [])

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        fresh, before = spec_of(new), spec_of(old)
        causes = metadata_update_causes(new, old) + immutable(fresh, before, "spec", "driver", "nodeName")
        return causes + immutable(fresh.get("pool") or {}, before.get("pool") or {}, "spec.pool", "name")


def _pool_causes(pool: Obj, path: str) -> list[FieldCause]:
    name, count, generation = str(pool.get("name") or ""), pool.get("resourceSliceCount") or 0, pool.get("generation")
    causes = [] if name else [required(f"{path}.name")]
    for part in name.split("/") if name else ():
        causes += [invalid(f"{path}.name", part, problem) for problem in names.dns_subdomain(part)]
    if count <= 0:
        causes.append(invalid(f"{path}.resourceSliceCount", count, "must be greater than zero"))
    if (generation or 0) < 0:
        causes.append(invalid(f"{path}.generation", generation, "must be greater than or equal to zero"))
    return causes


def _place_causes(spec: Obj) -> list[FieldCause]:
    """Where the devices are: said once."""
    causes: list[FieldCause] = []
    node = spec.get("nodeName")
    if node == "":
        causes.append(invalid("spec.nodeName", node, "must be either unset or set to a non-empty string"))
    elif node is not None:
        causes += [invalid("spec.nodeName", node, problem) for problem in names.dns_subdomain(str(node))]
    for key in PLACES[2:]:
        if spec.get(key) is False:
            causes.append(invalid(f"spec.{key}", False, "must be either unset or set to true"))
    given = [f"`{key}`" for key in PLACES if spec.get(key)]
    why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not given:
        causes.append(required("spec", why))
    elif len(given) > 1:
        causes.append(invalid("spec", f"{{{', '.join(given)}}}", f"{why}, but multiple fields are set"))
    return causes


def _device_place_causes(device: Obj, path: str) -> list[FieldCause]:
    """Where one device is, in slices that leave it to their devices."""
    causes: list[FieldCause] = []
    node = device.get("nodeName")
    if node == "":
        causes.append(invalid(f"{path}.nodeName", node, "must not be empty"))
    elif node is not None:
        causes += [invalid(f"{path}.nodeName", node, problem) for problem in names.dns_subdomain(str(node))]
    if device.get("allNodes") is False:
        causes.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    given = [f"`{key}`" for key in PLACES[:3] if device.get(key)]
    if not given:
        causes.append(required(path, ONE_DEVICE_PLACE))
    elif len(given) > 1:
        causes.append(invalid(path, f"{{{', '.join(given)}}}", ONE_DEVICE_PLACE))
    return causes


def _device_causes(device: Obj, path: str, *, placed: bool) -> list[FieldCause]:
    causes = _label(device.get("name"), f"{path}.name")
    if placed:
        causes += _device_place_causes(device, path)
    elif any(device.get(key) is not None for key in PLACES[:3]):
        why = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        causes.append(invalid(path, None, f"`nodeName`, `nodeSelector` and `allNodes` {why}"))
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    found = len(attributes) + len(capacity)
    if found > MOST_PROPERTIES:
        why = f"the total number of attributes and capacities must not exceed {MOST_PROPERTIES}"
        causes.append(invalid(path, found, why))
    for name, attribute in attributes.items():
        causes += _name_causes(str(name), f"{path}.attributes")
        causes += _attribute_causes(attribute or {}, f"{path}.attributes[{name}]")
    for name in capacity:
        causes += _name_causes(str(name), f"{path}.capacity")
    return causes


def _attribute_causes(attribute: Obj, path: str) -> list[FieldCause]:
    given = [key for key in ATTRIBUTE_VALUES if attribute.get(key) is not None]
    causes: list[FieldCause] = []
    for key in ("string", "version"):
        if isinstance(attribute.get(key), str):
            causes += _value_causes(key, attribute[key], f"{path}.{key}")
        for index, value in enumerate(attribute.get(f"{key}s") or ()):
            causes += _value_causes(key, str(value), f"{path}.{key}s[{index}]")
    if not given:
        causes.append(invalid(path, "", "exactly one value must be specified"))
    elif len(given) > 1:
        causes.append(invalid(path, attribute, "exactly one value must be specified"))
    return causes


def _value_causes(key: str, value: str, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if key == "version" and not SEMVER.fullmatch(value):
        causes.append(invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    return causes + ([too_long(path, LONGEST_VALUE)] if len(value.encode()) > LONGEST_VALUE else [])

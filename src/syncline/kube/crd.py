"""CustomResourceDefinitions themselves: defaults, validation, and whether their names are accepted.

Called by the embedded API when a definition is written, and by the controller that establishes definitions. In come
definitions; out come new objects, causes in Kubernetes' words, or a new ``status``. Nothing is changed in place.

Source: apiextensions-apiserver ``apis/apiextensions/v1/defaults.go``, ``validation/validation.go``,
``registry/customresourcedefinition/strategy.go`` and ``controller/status/naming_controller.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.kube import fieldcauses as causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig, generation, meta, name_of
from syncline.kube.rules import rule_errors
from syncline.kube.schemacheck import check_schema

__all__ = ["crd_status", "default_crd", "prepare_crd", "validate_crd", "validate_crd_update"]

WEBHOOK_PORT = 443
MAX_LABEL = 63
MAX_SUBDOMAIN = 253
APPROVAL = "api-approved.kubernetes.io"
SCOPES = ("Cluster", "Namespaced")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SIMPLE_PATH = re.compile(r"(\.[A-Za-z0-9_-]+)+")
_PROTECTED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")

_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


# --- defaults and what the server fills in -------------------------------------------------------------------------


def default_crd(crd: Obj) -> Obj:
    """Singular and list kind from the kind, conversion ``None``, the port of a conversion webhook's service."""
    spec = dict(crd.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind and not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    spec["names"] = names
    spec["conversion"] = _default_conversion(spec.get("conversion"))
    return {**crd, "spec": spec}


def _default_conversion(conversion: Any) -> Obj:
    if not conversion:
        return {"strategy": "None"}
    service = dig(conversion, "webhook", "clientConfig", "service")
    if not isinstance(service, dict) or service.get("port"):
        return dict(conversion)
    config = {**conversion["webhook"]["clientConfig"], "service": {**service, "port": WEBHOOK_PORT}}
    return {**conversion, "webhook": {**conversion["webhook"], "clientConfig": config}}


def prepare_crd(crd: Obj, old: Obj | None) -> Obj:
    """Status and generation as the strategy sets them on a create (``old`` is None) or an update of the spec."""
    if old is None:
        stored = _with_storage_version([], crd)
        status: Obj = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored or None,
        }
        return {**crd, "metadata": {**meta(crd), "generation": 1}, "status": status}
    status = dict(old.get("status") or {})
    status["storedVersions"] = _with_storage_version(status.get("storedVersions") or [], crd)
    bumped = generation(old) + (crd.get("spec") != old.get("spec"))
    return {**crd, "metadata": {**meta(crd), "generation": bumped}, "status": status}


def _with_storage_version(stored: list[str], crd: Obj) -> list[str]:
    name = next((version.get("name") for version in _versions(crd) if version.get("storage")), None)
    return stored if name is None or name in stored else [*stored, name]


def _versions(crd: Obj) -> list[Obj]:
    return [version for version in dig(crd, "spec", "versions", default=[]) if isinstance(version, dict)]


# --- validation ----------------------------------------------------------------------------------------------------


def validate_crd(crd: Obj) -> list[FieldCause]:
    """Why a defaulted and prepared definition is refused; metadata other than the name is checked elsewhere."""
    return [
        *_name(crd),
        *_group(crd),
        *_scope(crd),
        *_names(dig(crd, "spec", "names", default={})),
        *_version_list(crd),
        *_columns(crd),
        *_subresources(crd),
        *_conversion(dig(crd, "spec", "conversion", default={})),
        *check_schema(crd),
        *rule_errors(crd),
        *_stored_versions(crd),
    ]


def validate_crd_update(new: Obj, old: Obj) -> list[FieldCause]:
    """As :func:`validate_crd`, and what may not change: group and plural ever, scope and kind once established."""
    paths = [("group",), ("names", "plural")]
    if _condition(old, "Established").get("status") == "True":
        paths += [("scope",), ("names", "kind")]
    fixed = []
    for path in paths:
        value = dig(new, "spec", *path)
        if value != dig(old, "spec", *path):
            fixed.append(causes.invalid_value(".".join(("spec", *path)), value, "field is immutable"))
    return [*validate_crd(new), *fixed]


def _name(crd: Obj) -> list[FieldCause]:
    name, spec = name_of(crd), crd.get("spec") or {}
    plural = dig(spec, "names", "plural", default="")
    if name == f"{plural}.{spec.get('group') or ''}":
        return []
    return [causes.invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def _group(crd: Obj) -> list[FieldCause]:
    group = dig(crd, "spec", "group", default="")
    if not group:
        return [causes.required("spec.group")]
    if not _SUBDOMAIN.fullmatch(group) or len(group) > MAX_SUBDOMAIN:
        return [causes.invalid_value("spec.group", group, _SUBDOMAIN_TEXT)]
    if "." not in group:
        return [causes.invalid_value("spec.group", group, "should be a domain with at least one dot")]
    if _PROTECTED.fullmatch(group) and not annotations_of(crd).get(APPROVAL):
        why = (
            f'protected groups must have approval annotation "{APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        return [causes.required(f"metadata.annotations[{APPROVAL}]", why)]
    return []


def _scope(crd: Obj) -> list[FieldCause]:
    scope = dig(crd, "spec", "scope", default="")
    if not scope:
        return [causes.required("spec.scope")]
    return [] if scope in SCOPES else [causes.not_supported("spec.scope", scope, SCOPES)]


def _names(names: Obj) -> list[FieldCause]:
    found: list[FieldCause] = []
    for field in ("plural", "singular", "kind", "listKind"):
        name, path = names.get(field) or "", f"spec.names.{field}"
        if not name:
            found.append(causes.required(path))
        elif field in ("plural", "singular"):
            found += _label(name, path)
        elif not _is_label(name.lower()):
            why = f"may have mixed case, but should otherwise match: {_LABEL_TEXT}"
            found.append(causes.invalid_value(path, name, why))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        found.append(causes.invalid_value("spec.names.listKind", names["listKind"], why))
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or []):
            found += _label(name, f"spec.names.{field}[{index}]")
    return found


def _is_label(name: str) -> bool:
    return len(name) <= MAX_LABEL and _LABEL.fullmatch(name) is not None


def _label(name: str, path: str) -> list[FieldCause]:
    return [] if _is_label(name) else [causes.invalid_value(path, name, _LABEL_TEXT)]


def _version_list(crd: Obj) -> list[FieldCause]:
    versions = _versions(crd)
    found: list[FieldCause] = []
    for index, version in enumerate(versions):
        found += _label(version.get("name") or "", f"spec.versions[{index}].name")
        warning, path = version.get("deprecationWarning"), f"spec.versions[{index}].deprecationWarning"
        if warning is not None and not version.get("deprecated"):
            found.append(causes.invalid_value(path, warning, "can only be set for deprecated versions"))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        found.append(causes.invalid_value("spec.versions", versions, "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(causes.invalid_value("spec.versions", versions, why))
    return found


def _stored_versions(crd: Obj) -> list[FieldCause]:
    stored = dig(crd, "status", "storedVersions")
    path = "status.storedVersions"
    if not stored:
        return [causes.invalid_value(path, stored, "must have at least one stored version")]
    found = [
        causes.invalid_value(path, stored, f"must have the storage version {version.get('name')}")
        for version in _versions(crd)
        if version.get("storage") and version.get("name") not in stored
    ]
    served = {version.get("name") for version in _versions(crd)}
    for index, name in enumerate(stored):
        if name not in served:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            found.append(causes.invalid_value(f"{path}[{index}]", name, why))
    return found


def _per_version(crd: Obj, field: str) -> list[tuple[str, Any]]:
    """(path, value) of a field of the versions; one that all versions share stands at the top, as in old versions."""
    values = [version.get(field) for version in _versions(crd)]
    if values and all(value == values[0] for value in values):
        return [(f"spec.{field}", values[0])]
    return [(f"spec.versions[{index}].{field}", value) for index, value in enumerate(values)]


def _columns(crd: Obj) -> list[FieldCause]:
    found: list[FieldCause] = []
    for path, columns in _per_version(crd, "additionalPrinterColumns"):
        for index, column in enumerate(columns or []):
            found += _column(column, f"{path}[{index}]")
    return found


def _column(column: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    kind, form, where = column.get("type"), column.get("format"), column.get("jsonPath")
    if not column.get("name"):
        found.append(causes.required(f"{path}.name"))
    if not kind:
        found.append(causes.required(f"{path}.type", f"must be one of {','.join(COLUMN_TYPES)}"))
    elif kind not in COLUMN_TYPES:
        found.append(causes.invalid_value(f"{path}.type", kind, f"must be one of {','.join(COLUMN_TYPES)}"))
    if form and form not in COLUMN_FORMATS:
        found.append(causes.invalid_value(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not where:
        found.append(causes.required(f"{path}.JSONPath"))
    elif not where.startswith((".", "[")):
        found.append(causes.invalid_value(f"{path}.JSONPath", where, "must be a simple json path starting with ."))
    return found


SCALE_PATHS = (
    ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
    ("statusReplicasPath", (".status.",), "should be a json path under .status"),
    ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
)


def _subresources(crd: Obj) -> list[FieldCause]:
    found: list[FieldCause] = []
    for path, subresources in _per_version(crd, "subresources"):
        scale = (subresources or {}).get("scale")
        if scale is None:
            continue
        for field, roots, why in SCALE_PATHS:
            where, value = f"{path}.scale.{field}", scale.get(field)
            if not value:
                found += [] if field == "labelSelectorPath" else [causes.required(where)]
            elif not _SIMPLE_PATH.fullmatch(value):
                found.append(causes.invalid_value(where, value, "must be a simple json path starting with ."))
            elif not value.startswith(roots):
                found.append(causes.invalid_value(where, value, why))
    return found


def _conversion(conversion: Obj) -> list[FieldCause]:
    strategy, path = conversion.get("strategy") or "", "spec.conversion"
    if not strategy:
        return [causes.required(f"{path}.strategy")]
    if strategy not in ("None", "Webhook"):
        return [causes.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))]
    webhook = conversion.get("webhook") or {}
    if strategy == "None":
        if not webhook:
            return []
        why = "should not be set when strategy is not set to Webhook"
        return [causes.forbidden(f"{path}.webhookClientConfig", why)]
    if not webhook.get("clientConfig"):
        return [causes.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")]
    if not webhook.get("conversionReviewVersions"):
        return [causes.required(f"{path}.conversionReviewVersions")]
    return []


# --- names and conditions ------------------------------------------------------------------------------------------


def _condition(crd: Obj, kind: str) -> Obj:
    conditions = dig(crd, "status", "conditions", default=[])
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def crd_status(crd: Obj, others: Iterable[Obj], now: datetime) -> Obj:
    """``status`` with the names that can be accepted beside ``others`` and the conditions that follow.

    Every name is tried, so as many as possible are accepted; the last conflict is the one reported. A definition that
    was established stays so.
    """
    wanted: Obj = dig(crd, "spec", "names", default={})
    accepted: Obj = dig(crd, "status", "acceptedNames", default={})
    resources, kinds = _taken(crd, others)
    names = {"plural": "", "kind": "", **accepted}
    conflict = ("", "")
    for field, used in (("plural", resources), ("singular", resources)):
        conflict = _accept(names, wanted, field, used) or conflict
    conflict = _accept_short_names(names, wanted, resources) or conflict
    for field in ("kind", "listKind"):
        conflict = _accept(names, wanted, field, kinds) or conflict
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    conditions = [_names_accepted(conflict), _established(crd, bool(conflict[0]))]
    status = {**(crd.get("status") or {}), "acceptedNames": _ordered(names)}
    status["conditions"] = [_timed(condition, crd, now) for condition in conditions]
    return status


def _taken(crd: Obj, others: Iterable[Obj]) -> tuple[set[str], set[str]]:
    """(resource names, kinds) that other definitions of the group were granted."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if name_of(other) == name_of(crd) or dig(other, "spec", "group") != dig(crd, "spec", "group"):
            continue
        names: Obj = dig(other, "status", "acceptedNames", default={})
        resources.update(filter(None, (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ()))))
        kinds.update(filter(None, (names.get("kind"), names.get("listKind"))))
    return resources, kinds


def _accept(names: Obj, wanted: Obj, field: str, used: set[str]) -> tuple[str, str] | None:
    name = wanted.get(field) or ""
    if name != names.get(field) and name in used:
        return f"{field[0].upper()}{field[1:]}Conflict", f'"{name}" is already in use'
    if name or field in ("plural", "kind"):
        names[field] = name
    return None


def _accept_short_names(names: Obj, wanted: Obj, used: set[str]) -> tuple[str, str] | None:
    mine, asked = names.get("shortNames") or [], wanted.get("shortNames") or []
    clashes = [f'"{name}" is already in use' for name in asked if name not in mine and name in used]
    if clashes:
        return "ShortNamesConflict", clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]"
    if asked:
        names["shortNames"] = asked
    else:
        names.pop("shortNames", None)
    return None


def _names_accepted(conflict: tuple[str, str]) -> Obj:
    if conflict[0]:
        return {"type": "NamesAccepted", "status": "False", "reason": conflict[0], "message": conflict[1]}
    return {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"}


def _established(crd: Obj, conflicts: bool) -> Obj:
    before = _condition(crd, "Established")
    if before.get("status") == "True":
        return before
    condition: Obj = {"type": "Established", "status": "False" if conflicts else "True"}
    if conflicts:
        return {**condition, "reason": "NotAccepted", "message": "not all names are accepted"}
    return {**condition, "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}


def _timed(condition: Obj, crd: Obj, now: datetime) -> Obj:
    """With the transition time, which moves only when the status flips."""
    before = _condition(crd, condition["type"])
    kept = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    timed = {"type": condition["type"], "status": condition["status"], "lastTransitionTime": kept or format_time(now)}
    return {**timed, "reason": condition["reason"], "message": condition["message"]}


def _ordered(names: Obj) -> Obj:
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {field: names[field] for field in order if field in names}

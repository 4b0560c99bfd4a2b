"""CustomResourceDefinitions themselves: defaults, validation, and whether their names are accepted.

Called by the embedded API when a definition is written, and by the controller that establishes definitions. In come
definitions; returns new objects, causes in Kubernetes' words, or a new ``status``. Nothing is changed in place.

Source: apiextensions-apiserver ``apis/apiextensions/v1/defaults.go``, ``validation/validation.go``,
``registry/customresourcedefinition/strategy.go`` and ``controller/status/naming_controller.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias

from syncline.base.clock import format_time
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig, generation, meta, name_of
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema.custom import crdparts
from syncline.kube.schema.custom.crdparts import label_1035, versions_of
from syncline.kube.schema.custom.schemacheck import check_schema
from syncline.kube.text.names import dns_label_1035, dns_subdomain

APPROVAL = "api-approved.kubernetes.io"
APPROVAL_HELP = "https://github.com/kubernetes/enhancements/pull/1111"
SCOPES = ("Cluster", "Namespaced")
MAX_WARNING_BYTES = 256

Verdict: TypeAlias = tuple[str, str, str]
"""Status, reason and message of a condition."""
PENDING: Verdict = (
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)
IN_PROGRESS: Verdict = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED: Verdict = ("False", "InstanceDeletionCompleted", "removed all instances")
NEVER_ESTABLISHED: Verdict = ("False", "NeverEstablished", "resource was never established")

_PROTECTED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")


# --- defaults and what the server fills in -------------------------------------------------------------------------


def default_crd(crd: Obj) -> Obj:
    """Singular and list kind from the kind, conversion ``None``, the port of a conversion webhook's service.

    What says nothing (an empty enum, ``nullable: false``) is left out, as Kubernetes' own types leave it out.
    """
    spec = dict(crd.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind and not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    spec["names"] = names
    spec["conversion"] = crdparts.default_conversion(spec.get("conversion"))
    if not spec.get("preserveUnknownFields"):
        spec.pop("preserveUnknownFields", None)
    if isinstance(spec.get("versions"), list):
        spec["versions"] = [crdparts.tidy_version(version) for version in spec["versions"]]
    return {**crd, "spec": spec}


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


def stored_versions(crd: Obj) -> list[str]:
    """What a definition that does not say so was stored in: its storage version."""
    return _with_storage_version([], crd)


def _with_storage_version(stored: list[str], crd: Obj) -> list[str]:
    name = next((version.get("name") for version in versions_of(crd) if version.get("storage")), None)
    return stored if name is None or name in stored else [*stored, name]


# --- validation ----------------------------------------------------------------------------------------------------


def validate_crd(crd: Obj) -> list[FieldCause]:
    """Why a defaulted and prepared definition is refused; metadata other than the name is checked elsewhere."""
    return [*_name(crd), *_content(crd, None), *_approval(crd, None)]


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
    return [*_content(new, old), *fixed, *_approval(new, old)]


def _content(crd: Obj, old: Obj | None) -> list[FieldCause]:
    established = old is not None and _condition(old, "Established").get("status") == "True"
    return [
        *_group(crd),
        *_scope(crd),
        *_names(dig(crd, "spec", "names", default={})),
        *_version_list(crd),
        *crdparts.check_parts(crd, old),
        *crdparts.check_conversion(crd, old, established=established),
        *check_schema(crd, old),
        *_stored_versions(crd),
        *_preserve(crd, old),
    ]


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
    problems = dns_subdomain(group)
    if problems:
        return [causes.invalid_value("spec.group", group, ",".join(problems))]
    if "." not in group:
        return [causes.invalid_value("spec.group", group, "should be a domain with at least one dot")]
    return []


def _approval(crd: Obj, old: Obj | None) -> list[FieldCause]:
    """Groups of the Kubernetes community need a link to their review; a state that stays the same passes."""
    if not _PROTECTED.fullmatch(dig(crd, "spec", "group", default="")):
        return []
    given = annotations_of(crd).get(APPROVAL, "")
    state = _approval_state(given)
    if state in ("approved", "bypassed") or (
        old is not None and _approval_state(annotations_of(old).get(APPROVAL, "")) == state
    ):
        return []
    where = f"metadata.annotations[{APPROVAL}]"
    why = f'protected groups must have approval annotation "{APPROVAL}"'
    if state == "missing":
        return [causes.required(where, f"{why}, see {APPROVAL_HELP}")]
    what = 'with either a URL or a reason starting with "unapproved"'
    return [causes.invalid_value(where, given, f"{why} {what}, see {APPROVAL_HELP}")]


def _approval_state(text: str) -> str:
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    return "approved" if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]", text) else "invalid"


def _preserve(crd: Obj, old: Obj | None) -> list[FieldCause]:
    if not dig(crd, "spec", "preserveUnknownFields") or (old and dig(old, "spec", "preserveUnknownFields")):
        return []
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [causes.invalid_value("spec.preserveUnknownFields", True, why)]


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
            found += label_1035(name, path)
        elif dns_label_1035(name.lower()):
            why = f"may have mixed case, but should otherwise match: {','.join(dns_label_1035(name.lower()))}"
            found.append(causes.invalid_value(path, name, why))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        found.append(causes.invalid_value("spec.names.listKind", names["listKind"], why))
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or []):
            found += label_1035(name, f"spec.names.{field}[{index}]")
    return found


def _version_list(crd: Obj) -> list[FieldCause]:
    versions = versions_of(crd)
    found: list[FieldCause] = []
    for index, version in enumerate(versions):
        found += label_1035(version.get("name") or "", f"spec.versions[{index}].name")
        path = f"spec.versions[{index}].deprecationWarning"
        found += _deprecation_warning(version, path)
    names = [version.get("name") for version in versions]
    if names and names[0]:
        found += label_1035(names[0], "spec.version")
    if len(set(names)) != len(names):
        found.append(causes.invalid_value("spec.versions", versions, "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(causes.invalid_value("spec.versions", dig(crd, "spec", "versions"), why))
    return found


def _deprecation_warning(version: Obj, path: str) -> list[FieldCause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [causes.invalid_value(path, warning, "can only be set for deprecated versions")]
    found = []
    if len(warning.encode()) > MAX_WARNING_BYTES:
        found.append(causes.invalid_value(path, warning, f"must be <= {MAX_WARNING_BYTES} characters long"))
    if not warning:
        found.append(causes.invalid_value(path, warning, "must not be an empty string"))
    bad = next((place for place, letter in enumerate(warning) if not letter.isprintable()), None)
    if bad is not None:
        index = len(warning[:bad].encode())
        why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        found.append(causes.invalid_value(path, warning, why))
    return found


def _stored_versions(crd: Obj) -> list[FieldCause]:
    stored = dig(crd, "status", "storedVersions")
    path = "status.storedVersions"
    if not stored:
        return [causes.invalid_value(path, stored, "must have at least one stored version")]
    found = [
        causes.invalid_value(path, stored, f"must have the storage version {version.get('name')}")
        for version in versions_of(crd)
        if version.get("storage") and version.get("name") not in stored
    ]
    served = {version.get("name") for version in versions_of(crd)}
    for index, name in enumerate(stored):
        if name not in served:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            found.append(causes.invalid_value(f"{path}[{index}]", name, why))
    return found


# --- names and conditions ------------------------------------------------------------------------------------------


def _condition(crd: Obj, kind: str) -> Obj:
    conditions = dig(crd, "status", "conditions", default=[])
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def crd_status(crd: Obj, taken: TakenNames, now: datetime) -> Obj:
    """``status`` with the names that can be accepted beside those ``taken`` and the conditions that follow.

    Every name is tried, so as many as possible are accepted; the last conflict is the one reported. A definition that
    was established stays so.
    """
    wanted: Obj = dig(crd, "spec", "names", default={})
    accepted: Obj = dig(crd, "status", "acceptedNames", default={})
    resources, kinds = taken.beside(crd, kinds=False), taken.beside(crd, kinds=True)
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


class TakenNames:
    """Which definitions were granted which names, read once for all that are judged beside one another."""

    def __init__(self, definitions: Iterable[Obj]) -> None:
        self._owners: dict[tuple[str, bool, str], set[str]] = {}
        for one in definitions:
            names: Obj = dig(one, "status", "acceptedNames", default={})
            granted = [(False, names.get(field)) for field in ("plural", "singular")]
            granted += [(False, short) for short in names.get("shortNames") or ()]
            granted += [(True, names.get(field)) for field in ("kind", "listKind")]
            for is_kind, name in granted:
                if name:
                    group = str(dig(one, "spec", "group"))
                    self._owners.setdefault((group, is_kind, name), set()).add(name_of(one))

    def beside(self, crd: Obj, *, kinds: bool) -> Used:
        """Whether another definition of the group has a name."""
        group, mine = str(dig(crd, "spec", "group")), {name_of(crd)}
        return lambda name: bool(self._owners.get((group, kinds, name), mine) - mine)


def is_established(status: Obj) -> bool:
    return any(one.get("type") == "Established" and one["status"] == "True" for one in status.get("conditions") or ())


def installing(status: Obj) -> Obj:
    """The status between names that were accepted and a definition that is served (establishing controller)."""
    changed = {"status": "False", "reason": "Installing"}
    conditions = [{**one, **changed} if one["type"] == "Established" else one for one in status["conditions"]]
    return {**status, "conditions": conditions}


def terminating(crd: Obj, verdict: Verdict, now: datetime) -> Obj:
    """``status`` of a definition that is being deleted (finalizing controller)."""
    conditions: list[Obj] = list(dig(crd, "status", "conditions", default=None) or [])
    said = {"type": "Terminating", **dict(zip(("status", "reason", "message"), verdict, strict=True))}
    timed = _timed(said, crd, now)
    if any(one.get("type") == "Terminating" for one in conditions):
        conditions = [timed if one.get("type") == "Terminating" else one for one in conditions]
    else:
        conditions.append(timed)
    return {**(crd.get("status") or {}), "conditions": conditions}


Used = Callable[[str], bool]


def _accept(names: Obj, wanted: Obj, field: str, used: Used) -> tuple[str, str] | None:
    name = wanted.get(field) or ""
    if name != names.get(field) and used(name):
        return f"{field[0].upper()}{field[1:]}Conflict", f'"{name}" is already in use'
    if name or field in ("plural", "kind"):
        names[field] = name
    return None


def _accept_short_names(names: Obj, wanted: Obj, used: Used) -> tuple[str, str] | None:
    mine, asked = names.get("shortNames") or [], wanted.get("shortNames") or []
    clashes = [f'"{name}" is already in use' for name in asked if name not in mine and used(name)]
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

"""Upstream's Go types of an Application as data: :func:`conform` reads JSON into them and writes it again.

What Argo CD writes is what its types keep: unknown fields vanish, empty ones are omitted, some are always written.
Fields stand in Go's order, which decides whose error comes first. Source: ``types.go`` of Argo CD, ``ObjectMeta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from syncline.kube.objects import Obj
from syncline.kube.text.jsontext import json_kind


class UnfitError(ValueError):
    """A value that the type of its field cannot hold; the message is that of Go's decoder."""


OMITTED: Final = object()
"""What is not written."""


class Form(Enum):
    TEXT = "string"
    FLAG = "bool"
    NUMBER = "int64"
    COUNT = "intstr.IntOrString"
    ANY = "json"
    LIST = "list"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Type:
    """``go``: the name in errors. ``of``: the type of items of a list, or of values of a map."""

    form: Form
    go: str
    of: Type | None = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    key: str
    type: Type
    always: bool = False
    """Written even if empty (no ``omitempty``, or a struct in place)."""
    pointer: bool = False
    """Written unless null."""


def conform(value: Any, kind: Type, *, strict: bool = True, path: str = "") -> Any:
    """Return ``value`` as Go writes it after reading it into ``kind``; :data:`OMITTED` for null.

    Raises :class:`UnfitError` for a value that the type cannot hold; without ``strict`` it stays as it is.
    """
    if value is None:
        return OMITTED
    match kind.form:
        case Form.STRUCT if isinstance(value, dict):
            return _struct(value, kind, strict, path)
        case Form.LIST if isinstance(value, list) and kind.of is not None:
            made = (conform(item, kind.of, strict=strict, path=path) for item in value)
            return [_zero(kind.of) if item is OMITTED else item for item in made]
        case Form.MAP if isinstance(value, dict) and kind.of is not None:
            pairs = ((key, conform(item, kind.of, strict=strict, path=path)) for key, item in value.items())
            return {key: _zero(kind.of) if item is OMITTED else item for key, item in pairs}
        case Form.ANY:
            return value
    if not strict or _holds(kind.form, value):
        return value
    raise _unfit(value, kind, path)


def _struct(value: Obj, kind: Type, strict: bool, path: str) -> Obj:
    made: Obj = {}
    for field in kind.fields:
        below = f"{path}.{field.key}" if path else field.key
        found = conform(value.get(field.key), field.type, strict=strict, path=below)
        if found is OMITTED:
            if field.always:
                made[field.key] = _zero(field.type)
        elif field.always or field.pointer or not is_empty(found):
            made[field.key] = found
    return made


def is_empty(value: Any) -> bool:
    """Whether ``omitempty`` omits a value that is no pointer and no struct in place."""
    return value is False or value in ("", 0) or value in ([], {})


def _zero(kind: Type) -> Any:
    match kind.form:
        case Form.STRUCT:
            return _struct({}, kind, True, "")
        case Form.TEXT:
            return ""
        case Form.FLAG:
            return False
        case Form.NUMBER | Form.COUNT:
            return 0
    return None


def _holds(form: Form, value: Any) -> bool:
    match form:
        case Form.TEXT:
            return isinstance(value, str)
        case Form.FLAG:
            return isinstance(value, bool)
        case Form.NUMBER:
            return isinstance(value, int) and not isinstance(value, bool)
        case Form.COUNT:
            return isinstance(value, int | str) and not isinstance(value, bool)
    return False


def _unfit(value: Any, kind: Type, path: str) -> UnfitError:
    given = json_kind(value)
    if given == "number" and kind.form in (Form.NUMBER, Form.COUNT):
        given = f"number {msgspec.json.encode(value).decode()}"
    if not path:
        return UnfitError(f"json: cannot unmarshal {given} into Go value of type v1alpha1.Application")
    return UnfitError(f"json: cannot unmarshal {given} into Go struct field Application.{path} of type {kind.go}")


# --- the types ----------------------------------------------------------------------------------------------------

_TEXT = Type(Form.TEXT, "string")
_FLAG = Type(Form.FLAG, "bool")
_NUMBER = Type(Form.NUMBER, "int64")
_COUNT = Type(Form.COUNT, "int32")
_ANY = Type(Form.ANY, "interface {}")


def _list(of: Type) -> Type:
    return Type(Form.LIST, f"[]{of.go}", of)


def _map(of: Type) -> Type:
    return Type(Form.MAP, f"map[string]{of.go}", of)


_TEXTS = _list(_TEXT)
_TEXT_MAP = _map(_TEXT)


def _type(go: str, /, **fields: Type | tuple[Type, str]) -> Type:
    """Make a struct: ``go`` is its name; a type with ``always`` or ``pointer`` is a pair."""
    made = []
    for key, given in fields.items():
        kind, how = given if isinstance(given, tuple) else (given, "")
        made.append(Field(key, kind, always=how == "always", pointer=how == "pointer"))
    return Type(Form.STRUCT, f"v1alpha1.{go}", fields=tuple(made))


def _always(kind: Type) -> tuple[Type, str]:
    return kind, "always"


def _pointer(kind: Type) -> tuple[Type, str]:
    return kind, "pointer"


_HELM = _type(
    "ApplicationSourceHelm",
    valueFiles=_TEXTS,
    parameters=_list(_type("HelmParameter", name=_TEXT, value=_TEXT, forceString=_FLAG)),
    releaseName=_TEXT,
    values=_TEXT,
    fileParameters=_list(_type("HelmFileParameter", name=_TEXT, path=_TEXT)),
    version=_TEXT,
    passCredentials=_FLAG,
    ignoreMissingValueFiles=_FLAG,
    skipCrds=_FLAG,
    valuesObject=_pointer(_ANY),
    namespace=_TEXT,
    kubeVersion=_TEXT,
    apiVersions=_TEXTS,
    skipTests=_FLAG,
    skipSchemaValidation=_FLAG,
)
_KUSTOMIZE_SELECTOR = _type(
    "KustomizeSelector",
    group=_TEXT,
    version=_TEXT,
    kind=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    annotationSelector=_TEXT,
    labelSelector=_TEXT,
)
_KUSTOMIZE = _type(
    "ApplicationSourceKustomize",
    namePrefix=_TEXT,
    nameSuffix=_TEXT,
    images=_TEXTS,
    commonLabels=_TEXT_MAP,
    version=_TEXT,
    commonAnnotations=_TEXT_MAP,
    forceCommonLabels=_FLAG,
    forceCommonAnnotations=_FLAG,
    namespace=_TEXT,
    commonAnnotationsEnvsubst=_FLAG,
    replicas=_list(_type("KustomizeReplica", name=_always(_TEXT), count=_always(_COUNT))),
    patches=_list(
        _type("KustomizePatch", path=_TEXT, patch=_TEXT, target=_pointer(_KUSTOMIZE_SELECTOR), options=_map(_FLAG))
    ),
    components=_TEXTS,
    ignoreMissingComponents=_FLAG,
    labelWithoutSelector=_FLAG,
    kubeVersion=_TEXT,
    apiVersions=_TEXTS,
    labelIncludeTemplates=_FLAG,
)
_JSONNET_VARS = _list(_type("JsonnetVar", name=_always(_TEXT), value=_always(_TEXT), code=_FLAG))
_DIRECTORY = _type(
    "ApplicationSourceDirectory",
    recurse=_FLAG,
    jsonnet=_type("ApplicationSourceJsonnet", extVars=_JSONNET_VARS, tlas=_JSONNET_VARS, libs=_TEXTS),
    exclude=_TEXT,
    include=_TEXT,
    disableExtensionFilter=_FLAG,
)
_NAME_VALUES = {go: _list(_type(go, name=_always(_TEXT), value=_always(_TEXT))) for go in ("EnvEntry", "Info")}
_PLUGIN = _type(
    "ApplicationSourcePlugin",
    name=_TEXT,
    env=_NAME_VALUES["EnvEntry"],
    parameters=_list(
        _type(
            "ApplicationSourcePluginParameter",
            name=_always(_TEXT),
            string=_pointer(_TEXT),
            map=_pointer(_TEXT_MAP),
            array=_pointer(_TEXTS),
        )
    ),
)
_TOOLS = {
    "helm": _pointer(_HELM),
    "kustomize": _pointer(_KUSTOMIZE),
    "directory": _pointer(_DIRECTORY),
    "plugin": _pointer(_PLUGIN),
}
_SOURCE = _type(
    "ApplicationSource",
    repoURL=_always(_TEXT),
    path=_TEXT,
    targetRevision=_TEXT,
    **_TOOLS,
    chart=_TEXT,
    ref=_TEXT,
    name=_TEXT,
    tagPrefix=_TEXT,
)
_HYDRATOR = _type(
    "SourceHydrator",
    drySource=_always(
        _type("DrySource", repoURL=_always(_TEXT), targetRevision=_always(_TEXT), path=_always(_TEXT), **_TOOLS)
    ),
    syncSource=_always(_type("SyncSource", targetBranch=_always(_TEXT), path=_always(_TEXT), repoURL=_TEXT)),
    hydrateTo=_pointer(_type("HydrateTo", targetBranch=_always(_TEXT))),
)
_RETRY = _type(
    "RetryStrategy",
    limit=_NUMBER,
    backoff=_pointer(_type("Backoff", duration=_TEXT, factor=_pointer(_NUMBER), maxDuration=_TEXT)),
    refresh=_FLAG,
)
_SYNC_POLICY = _type(
    "SyncPolicy",
    automated=_pointer(
        _type(
            "SyncPolicyAutomated",
            prune=_pointer(_FLAG),
            selfHeal=_pointer(_FLAG),
            allowEmpty=_pointer(_FLAG),
            enabled=_pointer(_FLAG),
        )
    ),
    syncOptions=_TEXTS,
    retry=_pointer(_RETRY),
    managedNamespaceMetadata=_pointer(_type("ManagedNamespaceMetadata", labels=_TEXT_MAP, annotations=_TEXT_MAP)),
)
_IGNORED = _type(
    "ResourceIgnoreDifferences",
    group=_TEXT,
    kind=_always(_TEXT),
    name=_TEXT,
    namespace=_TEXT,
    jsonPointers=_TEXTS,
    jqPathExpressions=_TEXTS,
    managedFieldsManagers=_TEXTS,
)
SPEC = _type(
    "ApplicationSpec",
    source=_pointer(_SOURCE),
    destination=_always(_type("ApplicationDestination", server=_TEXT, namespace=_TEXT, name=_TEXT)),
    project=_always(_TEXT),
    syncPolicy=_pointer(_SYNC_POLICY),
    ignoreDifferences=_list(_IGNORED),
    info=_NAME_VALUES["Info"],
    revisionHistoryLimit=_pointer(_NUMBER),
    sources=_list(_SOURCE),
    sourceHydrator=_pointer(_HYDRATOR),
)
_OWNER = _type(
    "OwnerReference",
    apiVersion=_always(_TEXT),
    kind=_always(_TEXT),
    name=_always(_TEXT),
    uid=_always(_TEXT),
    controller=_pointer(_FLAG),
    blockOwnerDeletion=_pointer(_FLAG),
)
_METADATA = _type(
    "ObjectMeta",
    name=_TEXT,
    generateName=_TEXT,
    namespace=_TEXT,
    labels=_TEXT_MAP,
    annotations=_TEXT_MAP,
    ownerReferences=_list(_OWNER),
    finalizers=_TEXTS,
)
_STRATEGY = _type(
    "SyncStrategy",
    apply=_pointer(_type("SyncStrategyApply", force=_FLAG)),
    hook=_pointer(_type("SyncStrategyHook", force=_FLAG)),
)
_OPERATION = _type(
    "Operation",
    sync=_pointer(
        _type(
            "SyncOperation",
            revision=_TEXT,
            prune=_FLAG,
            dryRun=_FLAG,
            syncStrategy=_pointer(_STRATEGY),
            resources=_list(
                _type(
                    "SyncOperationResource",
                    group=_TEXT,
                    kind=_always(_TEXT),
                    name=_always(_TEXT),
                    namespace=_TEXT,
                )
            ),
            source=_pointer(_SOURCE),
            manifests=_TEXTS,
            syncOptions=_TEXTS,
            sources=_list(_SOURCE),
            revisions=_TEXTS,
            autoHealAttemptsCount=_NUMBER,
        )
    ),
    initiatedBy=_always(_type("OperationInitiator", username=_TEXT, automated=_FLAG)),
    info=_NAME_VALUES["Info"],
    retry=_always(_RETRY),
)
APPLICATION = _type("Application", metadata=_always(_METADATA), spec=_always(SPEC), operation=_pointer(_OPERATION))

"""One object during a build, :class:`Resource`: its nodes, and kustomize's notes (former names, prefixes, origin).

Created by ``reader`` and the generators, changed by every transformer. Upstream stores the notes in annotations that it
removes at the end; here they are attributes, and ``build_annotations`` returns upstream's annotations for JSON patches
that could see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from syncline.sources.kustomize.resources.schema import CLUSTER_SCOPED
from syncline.sources.kustomize.yaml.node import (
    Kind,
    Node,
    clear,
    is_empty,
    lookup,
    lookup_create,
    put,
    scalar,
    text,
)
from syncline.sources.kustomize.yaml.node import field as node_field
from syncline.sources.kustomize.yaml.values import to_json

BUILD_PREFIX = "internal.config.kubernetes.io/"
"""Domain of kustomize's own notes."""

_NOTES = (
    "previousKinds",
    "previousNames",
    "prefixes",
    "suffixes",
    "previousNamespaces",
    "allowNameChange",
    "allowKindChange",
    "refBy",
    "generatorBehavior",
    "needsHashSuffix",
    "path",
    "index",
    "seqindent",
    "id",
    "annotations-migration-resource-id",
    "helm-generated",
)
_OLD_NOTES = ("config.kubernetes.io/index", "config.kubernetes.io/path", "config.k8s.io/id")
BUILD_ANNOTATIONS = frozenset([*(BUILD_PREFIX + name for name in _NOTES), *_OLD_NOTES])
"""Notes that are never printed, the user who wrote them."""

NO_NAMESPACE = "_non_namespaceable_"
DEFAULT_NAMESPACE = "default"


def split_version(api_version: str) -> tuple[str, str]:
    """Split ``apps/v1`` into (``apps``, ``v1``)."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", api_version)


@dataclass(frozen=True, slots=True)
class Gvk:
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_selected(self, wanted: Gvk) -> bool:
        """Return True if every non-empty part of ``wanted`` is equal."""
        return (
            (not wanted.group or wanted.group == self.group)
            and (not wanted.version or wanted.version == self.version)
            and (not wanted.kind or wanted.kind == self.kind)
        )

    def __str__(self) -> str:
        return f"{self.kind or '[noKind]'}.{self.version or '[noVer]'}.{self.group or '[noGrp]'}"


@dataclass(frozen=True, slots=True)
class ResId:
    """Identity of an object. ``cluster``: the kind certainly has no namespace."""

    gvk: Gvk = field(default_factory=Gvk)
    name: str = ""
    namespace: str = ""
    cluster: bool = False

    @property
    def effective_namespace(self) -> str:
        if self.cluster:
            return NO_NAMESPACE
        return self.namespace or DEFAULT_NAMESPACE

    @property
    def key(self) -> tuple[Gvk, str, str]:
        """The identity key: equal keys mean the same object."""
        return self.gvk, self.name, self.effective_namespace

    def is_selected_by(self, wanted: ResId) -> bool:
        return (
            (not wanted.name or wanted.name == self.name)
            and (not wanted.namespace or wanted.effective_namespace == self.effective_namespace)
            and self.gvk.is_selected(wanted.gvk)
        )

    def __str__(self) -> str:
        return f"{self.gvk}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


class Behavior(StrEnum):
    UNSPECIFIED = "unspecified"
    CREATE = "create"
    REPLACE = "replace"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Former:
    """A former name of an object."""

    name: str
    namespace: str
    kind: str


@dataclass(slots=True, eq=False)
class Notes:
    """Kustomize's notes about an object during the build."""

    former: tuple[Former, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    behavior: Behavior | None = None
    needs_hash: bool = False
    allow_name_change: bool = False
    allow_kind_change: bool = False
    helm_generated: bool = False


class Resource:
    """An object. ``node`` is its tree; ``origin`` and ``transformations`` are JSON values for ``buildMetadata``."""

    __slots__ = ("node", "notes", "origin", "ref_vars", "transformations")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.notes = Notes()
        self.ref_vars: list[str] = []
        self.origin: dict[str, Any] | None = None
        self.transformations: list[dict[str, Any]] = []

    def copy(self) -> Resource:
        twin = Resource(self.node.copy())
        twin.notes = replace(self.notes)
        twin.ref_vars = list(self.ref_vars)
        twin.origin = self.origin
        twin.transformations = list(self.transformations)
        return twin

    @property
    def kind(self) -> str:
        return _value(node_field(self.node, "kind"))

    @property
    def api_version(self) -> str:
        return _value(node_field(self.node, "apiVersion"))

    @property
    def gvk(self) -> Gvk:
        return Gvk(*split_version(self.api_version), self.kind)

    @property
    def name(self) -> str:
        return self._meta("name")

    @property
    def namespace(self) -> str:
        return self._meta("namespace")

    def _meta(self, name: str) -> str:
        found = node_field(node_field(self.node, "metadata"), name)
        return "" if found is None or is_empty(found) else found.value

    @property
    def id(self) -> ResId:
        gvk = self.gvk
        cluster = (gvk.api_version, gvk.kind) in CLUSTER_SCOPED
        return ResId(gvk, self.name, self.namespace, cluster)

    @property
    def former_ids(self) -> list[ResId]:
        group, version = split_version(self.api_version)
        return [ResId(Gvk(group, version, was.kind), was.name, was.namespace) for was in self.notes.former]

    @property
    def all_ids(self) -> list[ResId]:
        return [*self.former_ids, self.id]

    @property
    def original_id(self) -> ResId:
        former = self.former_ids
        return former[0] if former else self.id

    def remember_id(self) -> None:
        """Record the current name before it changes."""
        here = self.id
        self.notes.former = (*self.notes.former, Former(here.name, here.effective_namespace, here.gvk.kind))
        self._drop_empty_annotations()

    def _drop_empty_annotations(self) -> None:
        metadata = node_field(self.node, "metadata")
        if metadata is not None and metadata.kind is Kind.MAP:
            clear(metadata, "annotations", only_empty=True)
        clear(self.node, "metadata", only_empty=True)

    def set_name(self, name: str) -> None:
        put(lookup_create(self.node, ["metadata"], Kind.MAP), "name", scalar(name))

    def set_kind(self, kind: str) -> None:
        put(self.node, "kind", scalar(kind))

    def set_gvk(self, gvk: Gvk) -> None:
        self.set_kind(gvk.kind)
        put(self.node, "apiVersion", scalar(gvk.api_version))

    def set_namespace(self, namespace: str) -> None:
        if namespace:
            put(lookup_create(self.node, ["metadata"], Kind.MAP), "namespace", scalar(namespace))
        elif (metadata := node_field(self.node, "metadata")) is not None:
            clear(metadata, "namespace")

    def labels(self) -> dict[str, str]:
        return self._texts("labels")

    def annotations(self) -> dict[str, str]:
        return self._texts("annotations")

    def _texts(self, name: str) -> dict[str, str]:
        found = node_field(node_field(self.node, "metadata"), name)
        if found is None or found.kind is not Kind.MAP:
            return {}
        return {key.value: value.value for key, value in found.pairs()}

    def set_labels(self, labels: Mapping[str, str]) -> None:
        self._set_texts("labels", labels)

    def set_annotations(self, annotations: Mapping[str, str]) -> None:
        self._set_texts("annotations", annotations)

    def _set_texts(self, name: str, values: Mapping[str, str]) -> None:
        metadata = lookup_create(self.node, ["metadata"], Kind.MAP)
        clear(metadata, name)
        if values:
            made = put(metadata, name, Node(Kind.MAP))
            for key in sorted(values):
                put(made, key, text(values[key]))

    def data(self, name: str) -> dict[str, str]:
        """Return ``data`` or ``binaryData`` as text."""
        found = lookup(self.node, [name])
        if found is None or found.kind is not Kind.MAP:
            return {}
        return {key.value: _value(value) for key, value in found.pairs()}

    def value(self) -> dict[str, Any]:
        """Return the object as JSON; raises :class:`BuildError`."""
        made: dict[str, Any] = to_json(self.node)
        return made

    def build_annotations(self) -> dict[str, str]:
        """Return the annotations that upstream would have at this moment."""
        notes = self.notes
        made = {
            "previousNames": ",".join(was.name for was in notes.former),
            "previousNamespaces": ",".join(was.namespace for was in notes.former),
            "previousKinds": ",".join(was.kind for was in notes.former),
            "prefixes": ",".join(notes.prefixes),
            "suffixes": ",".join(notes.suffixes),
            "generatorBehavior": notes.behavior or "",
            "needsHashSuffix": "enabled" if notes.needs_hash else "",
        }
        return {BUILD_PREFIX + name: value for name, value in made.items() if value}


def _value(node: Node | None) -> str:
    return "" if node is None else node.value

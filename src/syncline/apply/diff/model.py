"""The data types of the diff; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from syncline.apply.diff.jq import Answers
from syncline.kube.objects import GVK, Obj
from syncline.kube.schema.model import Schema, schema_for

MANAGER = "argocd-controller"
"""Field manager of every server-side apply; upstream's, so that both tools agree on ownership."""


class DiffError(ValueError):
    """Two objects cannot be compared; the message is upstream's."""


class DiffMode(StrEnum):
    """How the object after a sync is predicted."""

    THREE_WAY = "three-way"
    STRUCTURED_MERGE = "structured-merge"
    SERVER_SIDE = "server-side"


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One entry of ``spec.ignoreDifferences``. ``group`` and ``kind`` are globs; an empty name or namespace matches
    any."""

    group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    json_pointers: tuple[str, ...] = ()
    jq_expressions: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> IgnoreRule:
        """Parse an entry; other types count as empty."""
        texts = {key: str(entry.get(key) or "") for key in ("group", "kind", "name", "namespace")}
        return cls(
            **texts,
            json_pointers=tuple(entry.get("jsonPointers") or ()),
            jq_expressions=tuple(entry.get("jqPathExpressions") or ()),
            managers=tuple(entry.get("managedFieldsManagers") or ()),
        )


@dataclass(frozen=True, slots=True)
class KnownTypeField:
    """A field of a custom resource that holds a Kubernetes type (``core/v1/PodSpec``, ``core/Quantity``)."""

    field: str
    type: str


@dataclass(frozen=True, slots=True)
class Override:
    """The comparison's settings of one kind, from ``resource.customizations``."""

    ignore: IgnoreRule = field(default_factory=IgnoreRule)
    known_types: tuple[KnownTypeField, ...] = ()

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Override:
        known = tuple(
            KnownTypeField(str(item.get("field") or ""), str(item.get("type") or ""))
            for item in entry.get("knownTypeFields") or ()
        )
        return cls(IgnoreRule.parse(entry.get("ignoreDifferences") or {}), known)


DEFAULT_OVERRIDES: Mapping[str, Override] = {"*/*": Override(IgnoreRule(json_pointers=("/status",)))}
"""A manifest's ``status`` is never a difference unless settings include it (``ignoreResourceStatusField: all``)."""


class Tracked(Protocol):
    """How tracking data ties objects to their manager."""

    def normalized(self, target: Obj, live: Obj) -> Obj:
        """Return ``live`` with the tracking data of ``target`` if only the method differs."""
        ...


@dataclass(frozen=True)
class DiffSettings:
    """All inputs of a diff but the two objects. ``overrides``: by ``GROUP/KIND``, for the core group also ``KIND``."""

    mode: DiffMode = DiffMode.THREE_WAY
    ignore: tuple[IgnoreRule, ...] = ()
    overrides: Mapping[str, Override] = field(default_factory=dict)
    ignore_aggregated_roles: bool = False
    tracking: Tracked | None = None
    """If set, tracking data that differs by method only is made equal."""
    include_mutation_webhook: bool = False
    dry_run: Obj | None = None
    """For ``server-side``: the API server's dry-run result; None: it failed."""
    dry_run_error: str = ""
    """Why the dry run failed."""
    dry_run_name: str = ""
    """Identifies the dry run: equal names, equal results. Empty: none."""
    schema_of: Callable[[GVK], Schema | None] = schema_for
    """Returns schemas for ``structured-merge`` and ``server-side``, also of custom resources."""
    jq: Answers = field(default_factory=Answers, compare=False, repr=False)
    """Known results of users' expressions."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The API server's result of an apply as dry run; ``content`` is empty if it was refused."""

    name: str
    content: bytes = field(default=b"", repr=False)
    error: str = ""

    def of(self, settings: DiffSettings) -> DiffSettings:
        """Return ``settings`` for the predicted pair."""
        answer = msgspec.json.decode(self.content) if self.content else None
        return replace(
            settings,
            mode=DiffMode.SERVER_SIDE,
            dry_run=answer,
            dry_run_error=self.error,
            dry_run_name=self.name,
        )


@dataclass(frozen=True, slots=True)
class DiffResult:
    """``live`` and ``predicted`` object; None without a live object or without a target."""

    modified: bool
    live: Obj | None
    predicted: Obj | None

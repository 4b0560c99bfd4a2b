"""The values that comparing two objects speaks in; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from syncline.apply.diff.jq import Answers
from syncline.kube.objects import GVK, Obj
from syncline.kube.schema.model import Schema, schema_for

__all__ = [
    "DEFAULT_OVERRIDES",
    "MANAGER",
    "DiffError",
    "DiffMode",
    "DiffResult",
    "DiffSettings",
    "IgnoreRule",
    "KnownTypeField",
    "Override",
    "Prediction",
]

MANAGER = "argocd-controller"
"""Field manager of every server-side apply, as upstream names it, so that both tools agree on who owns what."""


class DiffError(ValueError):
    """Two objects cannot be compared; the message is upstream's."""


class DiffMode(StrEnum):
    """How the object after a sync is predicted."""

    THREE_WAY = "three-way"
    STRUCTURED_MERGE = "structured-merge"
    SERVER_SIDE = "server-side"


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One entry of ``spec.ignoreDifferences``. ``group`` and ``kind`` are globs; an empty name or namespace is any."""

    group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    json_pointers: tuple[str, ...] = ()
    jq_expressions: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> IgnoreRule:
        """From an entry as written; what is no text does not count."""
        texts = {key: str(entry.get(key) or "") for key in ("group", "kind", "name", "namespace")}
        return cls(
            **texts,
            json_pointers=tuple(entry.get("jsonPointers") or ()),
            jq_expressions=tuple(entry.get("jqPathExpressions") or ()),
            managers=tuple(entry.get("managedFieldsManagers") or ()),
        )


@dataclass(frozen=True, slots=True)
class KnownTypeField:
    """A field of a custom resource that holds a type of Kubernetes (``core/v1/PodSpec``, ``core/Quantity``)."""

    field: str
    type: str


@dataclass(frozen=True, slots=True)
class Override:
    """The settings of one kind, from ``resource.customizations``; the parts that a comparison reads."""

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
"""A manifest's ``status`` is never a difference unless settings say so (``ignoreResourceStatusField: all``)."""


class Tracked(Protocol):
    """How objects are tied to what manages them."""

    def normalized(self, target: Obj, live: Obj) -> Obj:
        """``live`` with the tracking data of ``target`` where only the method differs."""
        ...


@dataclass(frozen=True)
class DiffSettings:
    """Everything but the two objects. ``overrides`` has keys ``GROUP/KIND``, for the core group also ``KIND``."""

    mode: DiffMode = DiffMode.THREE_WAY
    ignore: tuple[IgnoreRule, ...] = ()
    overrides: Mapping[str, Override] = field(default_factory=dict)
    ignore_aggregated_roles: bool = False
    tracking: Tracked | None = None
    """Given: tracking data is made equal where only its method changed."""
    include_mutation_webhook: bool = False
    dry_run: Obj | None = None
    """``server-side``: what the API server answered to the dry run; None: it failed."""
    dry_run_error: str = ""
    """Why it failed."""
    dry_run_name: str = ""
    """Names the question whose answer ``dry_run`` is: equal names, equal answers. Empty: it has none."""
    schema_of: Callable[[GVK], Schema | None] = schema_for
    """Schemas for ``structured-merge`` and ``server-side``, those of custom resources too."""
    jq: Answers = field(default_factory=Answers, compare=False, repr=False)
    """What is known of the expressions of users."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The API server's answer to the dry run of an apply; ``content`` is empty where it refused."""

    name: str
    content: bytes = field(default=b"", repr=False)
    error: str = ""

    def of(self, settings: DiffSettings) -> DiffSettings:
        """``settings`` for the pair that was asked about."""
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
    """``live`` is None without a live object, ``predicted`` without a target."""

    modified: bool
    live: Obj | None
    predicted: Obj | None

"""Field specs: the paths that a transformer changes, and how they are walked.

``config`` keeps lists of them, every transformer calls :func:`apply_specs` or :func:`apply_spec`. Source: kustomize
``api/filters/fieldspec``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.ordering import KIND_ORDER, sort_text
from syncline.sources.kustomize.resources.resource import Gvk, Resource
from syncline.sources.kustomize.yaml.node import NULL, Kind, Node, get, put

Setter = Callable[[Node], None]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """``path`` has its steps between slashes (``\\/`` is a slash in a name); ``create`` makes what is missing."""

    path: str
    gvk: Gvk = field(default_factory=Gvk)
    create: bool = False

    @classmethod
    def of(cls, raw: dict[str, Any]) -> FieldSpec:
        gvk = Gvk(raw.get("group") or "", raw.get("version") or "", raw.get("kind") or "")
        return cls(raw.get("path") or "", gvk, bool(raw.get("create")))


def merge_specs(specs: Iterable[FieldSpec], more: Iterable[FieldSpec]) -> tuple[FieldSpec, ...]:
    """Both lists; a spec whose path and kinds are there already adds nothing, but has to agree on ``create``."""
    made = list(specs)
    by_path: dict[str, list[FieldSpec]] = {}
    for spec in made:
        by_path.setdefault(spec.path, []).append(spec)
    for spec in more:
        same = next((old for old in by_path.get(spec.path, ()) if old.gvk.is_selected(spec.gvk)), None)
        if same is None:
            made.append(spec)
            by_path.setdefault(spec.path, []).append(spec)
        elif same.create != spec.create:
            raise BuildError("conflicting fieldspecs")
    return tuple(made)


def sorted_specs(specs: Iterable[FieldSpec]) -> tuple[FieldSpec, ...]:
    return tuple(sorted(specs, key=lambda spec: (KIND_ORDER.get(spec.gvk.kind, 0), sort_text(spec.gvk))))


def apply_specs(
    resource: Resource, specs: Iterable[FieldSpec], setter: Setter, kind: Kind = Kind.NONE, tag: str = ""
) -> None:
    for spec in specs:
        apply_spec(resource, spec, setter, kind, tag)


def apply_spec(resource: Resource, spec: FieldSpec, setter: Setter, kind: Kind = Kind.NONE, tag: str = "") -> None:
    """Call ``setter`` with each node that ``spec`` names; ``kind`` and ``tag`` are those of a node that it creates."""
    if not resource.gvk.is_selected(spec.gvk):
        return
    walk = _Walk(spec, setter, kind, tag)
    try:
        walk.walk(resource.node, 0)
    except BuildError as error:
        # The kind of the error matters to the namespace transformer.
        error.args = (f"considering field '{spec.path}' of object {resource.id}: {error.message}",)
        error.message = error.args[0]
        raise


@lru_cache(maxsize=4096)
def split_path(path: str, separator: str = "/") -> tuple[str, ...]:
    """The steps of a path; a backslash before a separator makes it part of a name."""
    parts = path.split(separator)
    if len(parts) > 1 and parts[0] == "":
        parts = parts[1:]
    steps = [parts[0]]
    for part in parts[1:]:
        if steps[-1].endswith("\\"):
            steps[-1] = steps[-1][:-1] + separator + part
        else:
            steps.append(part)
    return tuple(steps)


class _Walk:
    def __init__(self, spec: FieldSpec, setter: Setter, kind: Kind, tag: str) -> None:
        self._steps = split_path(spec.path)
        self._create = spec.create and kind is not Kind.NONE
        self._setter = setter
        self._kind = kind
        self._tag = tag

    def walk(self, node: Node, at: int) -> None:
        if at == len(self._steps):
            self._setter(node)
        elif node.tag == NULL:
            return
        elif node.kind is Kind.SEQ:
            for item in node.items:
                self.walk(item, at)
        elif node.kind is Kind.MAP:
            self._field(node, at)
        else:
            raise BuildError("expected sequence or mapping node")

    def _field(self, node: Node, at: int) -> None:
        step = self._steps[at]
        name = step.removesuffix("[]")
        if not name:
            raise BuildError("cannot set or create an empty field name")
        is_sequence = name != step
        last = at == len(self._steps) - 1
        kind, tag = (Kind.SEQ, "") if is_sequence else (Kind.NONE, "")
        if self._create and not is_sequence:
            kind, tag = (self._kind, self._tag) if last else (Kind.MAP, "!!map")
        found = get(node, name)
        if found is None:
            if not self._create or is_sequence:
                return
            found = put(node, name, Node(kind))
        if found.tag == NULL and kind is not Kind.NONE:
            found.kind, found.tag = kind, tag
        self.walk(found, at + 1)

"""A child configuration laid over its parent, as Ignition does it. Merging never validates.

Both are canonical and of one version. A child's value wins wherever it has one, also when it is empty or zero; lists
are joined by what makes their items equal (see the table), or appended where items may repeat; files, directories and
links share one namespace, so a directory replaces a file of the same path. Parent items keep their places, new items
follow. Source: coreos/ignition ``config/merge/merge.go``.

Who translates reports (a template merged into what a person wrote) asks for the *transcript*: which path of the parent
or the child went to which path of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from syncline.ignition.checking import item_key
from syncline.ignition.report import Path
from syncline.ignition.schema import Field, Object, Schema, schema
from syncline.ignition.typed import canonical

__all__ = ["Mapping", "merge", "merge_transcribed"]

Value: TypeAlias = "dict[str, Any]"
Side: TypeAlias = Literal["parent", "child"]


@dataclass(frozen=True, slots=True)
class Mapping:
    """``origin``, a path of the parent or the child, contributed to ``result``."""

    side: Side
    origin: Path
    result: Path


def merge(minor: int, parent: Value, child: Value) -> Value:
    """``child`` over ``parent``, both canonical at 3.``minor``; a new canonical configuration."""
    return _Merge(schema(minor), None).config(parent, child)


def merge_transcribed(minor: int, parent: Value, child: Value) -> tuple[Value, list[Mapping]]:
    """The same, and where each part came from, in upstream's order."""
    transcript: list[Mapping] = []
    return _Merge(schema(minor), transcript).config(parent, child), transcript


_Paths: TypeAlias = "tuple[Path, Path, Path]"
"""Of the parent, the child and the result."""


def _below(paths: _Paths, *steps: str | int) -> _Paths:
    return (*paths[0], *steps), (*paths[1], *steps), (*paths[2], *steps)


@dataclass(slots=True)
class _Merge:
    table: Schema
    transcript: list[Mapping] | None

    def config(self, parent: Value, child: Value) -> Value:
        return canonical(self.table.minor, self.object(self.table.root, parent, child, ((), (), ())))

    def object(self, kind: Object, parent: Value, child: Value, paths: _Paths) -> Value:
        """Field by field. Before 3.3 the target of a link is always there; a child that says nothing about the link
        but its place keeps the parent's."""
        result: Value = {}
        shown = child
        if kind.name == "Link" and not child.get("target") and child.get("hard") is None:
            shown = {**child, "target": parent.get("target"), "hard": parent.get("hard")}
        for name, field in kind.fields.items():
            value = self.field(kind, field, parent, shown, _below(paths, name))
            if value is not None:
                result[name] = value
        return result

    def field(self, kind: Object, field: Field, parent: Value, child: Value, paths: _Paths) -> Any:
        below, above = parent.get(field.name), child.get(field.name)
        if field.many:
            return self.items(kind, field, parent, child, paths)
        if field.scalar:
            side: Side = "parent" if field.nullable and above is None else "child"
            value = below if side == "parent" else above
            self.scalar(field, side, value, paths)
            return value
        inner = self.table.objects[field.type]
        if above is None or (not field.nullable and _zero(inner, above)):
            self.copied(inner, "parent", below, paths[0], paths[2])
            return below
        if below is None or (not field.nullable and _zero(inner, below)):
            self.copied(inner, "child", above, paths[1], paths[2])
            return above
        done = self.object(inner, below, above, paths)
        self.both(paths)
        return done

    # -- lists -------------------------------------------------------------------------------------------------------

    def items(self, kind: Object, field: Field, parent: Value, child: Value, paths: _Paths) -> list[Any] | None:
        below, above = parent.get(field.name) or [], child.get(field.name) or []
        if not below and not above:
            return None
        inner = None if field.scalar else self.table.objects[field.type]
        if field.name in kind.plain:
            return self.appended(inner, below, above, paths)
        return self.joined(kind, field, inner, child, paths, below, above)

    def appended(self, inner: Object | None, below: list[Any], above: list[Any], paths: _Paths) -> list[Any]:
        for index, item in enumerate(below):
            self.copied(inner, "parent", item, (*paths[0], index), (*paths[2], index))
        for index, item in enumerate(above):
            self.copied(inner, "child", item, (*paths[1], index), (*paths[2], len(below) + index))
        self.note("parent", paths[0], paths[2], bool(below))
        self.note("child", paths[1], paths[2], bool(above))
        return [*below, *above]

    def joined(
        self,
        kind: Object,
        field: Field,
        inner: Object | None,
        child: Value,
        paths: _Paths,
        below: list[Any],
        above: list[Any],
    ) -> list[Any]:
        """The parent's items, each with the child's item of the same key laid over it; then the child's others. A
        parent's item whose key the child has in another list of the namespace is left to that list."""
        mine = {item_key(inner, item): index for index, item in enumerate(above)}
        others = self._elsewhere(kind, field, child)
        result: list[Any] = []
        from_parent = from_child = False
        for index, item in enumerate(below):
            key = item_key(inner, item)
            place = (*paths[2], len(result))
            if key in others and (key not in mine or others[key] == "later"):
                continue
            if key not in mine:
                self.copied(inner, "parent", item, (*paths[0], index), place)
                result.append(item)
                from_parent = True
                continue
            from_parent = from_child = True
            over, over_path = above[mine[key]], (*paths[1], mine[key])
            if inner is None:
                self.copied(None, "child", over, over_path, place)
                result.append(over)
                continue
            if inner.name == "HTTPHeader" and over.get("value") is None:
                continue
            result.append(self.object(inner, item, over, ((*paths[0], index), over_path, place)))
            self.both(((*paths[0], index), over_path, place))
        known = {item_key(inner, item) for item in below}
        for index, item in enumerate(above):
            if item_key(inner, item) not in known:
                self.copied(inner, "child", item, (*paths[1], index), (*paths[2], len(result)))
                result.append(item)
                from_child = True
        self.note("parent", paths[0], paths[2], from_parent)
        self.note("child", paths[1], paths[2], from_child)
        return result

    def _elsewhere(self, kind: Object, field: Field, child: Value) -> dict[str, str]:
        """Keys that the child has in other lists of the same namespace; where a key is in several lists, the last one
        counts."""
        if field.name not in kind.shared:
            return {}
        found: dict[str, str] = {}
        behind = False
        for name, other in kind.fields.items():
            if name == field.name:
                behind = True
            elif name in kind.shared:
                inner = None if other.scalar else self.table.objects[other.type]
                for item in child.get(name) or ():
                    found[item_key(inner, item)] = "later" if behind else "earlier"
        return found

    # -- the transcript ----------------------------------------------------------------------------------------------

    def note(self, side: Side, origin: Path, result: Path, happened: bool = True) -> None:
        if self.transcript is not None and happened:
            self.transcript.append(Mapping(side, origin, result))

    def both(self, paths: _Paths) -> None:
        self.note("parent", paths[0], paths[2])
        self.note("child", paths[1], paths[2])

    def scalar(self, field: Field, side: Side, value: Any, paths: _Paths) -> None:
        present = value is not None if field.nullable else bool(value)
        self.note(side, paths[0 if side == "parent" else 1], paths[2], present)

    def copied(self, kind: Object | None, side: Side, value: Any, origin: Path, result: Path) -> bool:
        """Note a value that was taken as it is, parts first; whether there was anything."""
        if self.transcript is None or value is None:
            return False
        if kind is None:
            self.note(side, origin, result, bool(value))
            return bool(value)
        some = False
        for name, field in kind.fields.items():
            part = value.get(name)
            if part is None:
                continue
            inner = None if field.scalar else self.table.objects[field.type]
            place = ((*origin, name), (*result, name))
            if field.many:
                any_item = False
                for index, item in enumerate(part):
                    any_item |= self.copied(inner, side, item, (*place[0], index), (*place[1], index))
                self.note(side, *place, any_item)
                some |= any_item
            elif inner is not None:
                some |= self.copied(inner, side, part, *place)
            else:
                present = field.nullable or bool(part)
                self.note(side, *place, present)
                some |= present
        self.note(side, origin, result, some)
        return some


def _zero(kind: Object, value: Value) -> bool:
    """An object that says nothing, as only those have that are always written."""
    return all(part is None or (part == "" and not kind.fields[name].nullable) for name, part in value.items())

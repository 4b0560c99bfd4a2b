"""The fields of messages on the wire: :class:`Messages`, of tables that ``tools/build_protobuf.py`` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from syncline.kube.schema import store

SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
ZEROS: dict[str, Any] = {"string": "", "bytes": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

Rows = Sequence[Sequence[Any]]
"""Of one message: number, JSON name, type and marks (see the tool) of each field."""


@dataclass(frozen=True, slots=True)
class Field:
    number: int
    name: str
    """In JSON; empty for a message that is written into its owner."""
    kind: str
    """A scalar type, or the name of a message."""
    is_map: bool
    repeated: bool
    pointer: bool
    omit_empty: bool
    omit_zero: bool
    inline: bool

    @property
    def scalar(self) -> bool:
        return self.kind in SCALARS


class Messages:
    """Messages by name; each is unpacked when first asked for."""

    def __init__(self, *tables: Mapping[str, Rows]) -> None:
        self._tables = tables
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._lists: dict[str, bool] = {}

    def __contains__(self, message: str) -> bool:
        return any(message in table for table in self._tables)

    def fields(self, message: str) -> tuple[Field, ...]:
        """Return the fields of a message that is in one of the tables."""
        found = self._fields.get(message)
        if found is None:
            found = self._fields[message] = tuple(_field(*row) for row in self._rows(message))
        return found

    def is_list(self, message: str) -> bool:
        """Return whether the Go type is a list, which protobuf must wrap in a message."""
        found = self._lists.get(message)
        if found is None:
            found = self._lists[message] = any("=" in marks for _, _, _, marks in self._rows(message))
        return found

    def _rows(self, message: str) -> Rows:
        return next(table[message] for table in self._tables if message in table)


def _field(number: int, name: str, kind: str, marks: str) -> Field:
    return Field(number, name, kind, "{" in marks, "[" in marks, "*" in marks, "?" in marks, "0" in marks, "~" in marks)


@cache
def kubernetes_messages() -> Messages:
    """Return the messages of Kubernetes' own types."""
    return Messages(store.protobuf_table())

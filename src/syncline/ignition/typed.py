"""Converts a JSON value to a configuration of one version, with known keys only, in upstream's order: :func:`decode`.

The result is plain JSON, equal to upstream's output for the same input: absent and null values of nullable fields are
left out, zero values of other fields too unless the specification always writes them, and empty objects disappear. Keys
match in any case, as in Go. Used by parser, converter, merger, and code that builds configurations by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from syncline.ignition.jsontext import Source
from syncline.ignition.report import Path
from syncline.ignition.schema import PLAIN, Field, Object, Schema, schema

_INT_MAX = 2**63


@dataclass(frozen=True, slots=True)
class Mistype:
    """The first value of the wrong type: its path, and Go's error."""

    path: Path
    message: str

    def sentence(self, source: Source) -> str:
        """The message with a number as ``source`` writes it: ``1e2`` is not ``100``."""
        head, sign, rest = self.message.partition("cannot unmarshal number ")
        if not sign or rest.startswith("into "):
            return self.message
        place = source.place(self.path)
        written = source.raw[place.start : place.end].decode("utf-8", "replace")
        return f"{head}{sign}{written}{rest[rest.index(' into ') :]}"


@dataclass(slots=True)
class _Decoder:
    table: Schema
    mistypes: list[Mistype] = field(default_factory=list)

    def object(self, kind: Object, document: dict[str, Any], path: Path, into: dict[str, Any]) -> dict[str, Any]:
        """``document`` read into ``into`` (what earlier spellings of the same key left there)."""
        for key, value in document.items():
            known = kind.fields.get(key) or kind.fields.get(kind.folded.get(folded(key), ""))
            if known is None:
                continue
            if value is None:
                if known.many or known.nullable:
                    into.pop(known.name, None)
                continue
            found = self.field(kind.name, known, value, (*path, key), into.get(known.name))
            if found is not None:
                into[known.name] = found
        return _ordered(kind, into)

    def field(self, owner: str, known: Field, value: Any, path: Path, before: Any) -> Any:
        wanted = _go_type(self.table, owner, known)
        if not known.many:
            return self.one(known, value, path, before, wanted)
        if not isinstance(value, list):
            self.wrong(known, value, path, "types.HTTPHeaders" if known.type == "HTTPHeader" else f"[]{wanted}")
            return None
        items = [
            self.one(known, item, (*path, index), None, wanted) if item is not None else self.zero(known)
            for index, item in enumerate(value)
        ]
        return [self.zero(known) if item is None else item for item in items]

    def one(self, known: Field, value: Any, path: Path, before: Any, wanted: str) -> Any:
        if not known.scalar:
            if isinstance(value, dict):
                kept = dict(before) if isinstance(before, dict) else {}
                return self.object(self.table.objects[known.type], value, path, kept)
        elif _fits(known.type, value):
            return value
        self.wrong(known, value, path, wanted)
        return None

    def zero(self, known: Field) -> Any:
        """What a null item of a list becomes."""
        return PLAIN[known.type]() if known.scalar else _ordered(self.table.objects[known.type], {})

    def wrong(self, known: Field, value: Any, path: Path, wanted: str) -> None:
        where = ".".join(("Config", *(str(step) for step in path)))
        what = _go_kind(value, known)
        into = where if isinstance(path[-1], int) else f"Go struct field {where}"
        self.mistypes.append(Mistype(path, f"json: cannot unmarshal {what} into {into} of type {wanted}"))


def decode(minor: int, document: Any) -> tuple[dict[str, Any], Mistype | None]:
    """Return ``document`` as a configuration of 3.``minor``, and the first value of the wrong type."""
    return decode_as(schema(minor), document)


def decode_as(table: Schema, document: Any) -> tuple[dict[str, Any], Mistype | None]:
    """Like :func:`decode`, for any table."""
    decoder = _Decoder(table)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        what = _go_kind(document, None)
        return {}, Mistype((), f"json: cannot unmarshal {what} into Go value of type types.Config")
    config = decoder.object(table.root, document, (), {})
    return config, decoder.mistypes[0] if decoder.mistypes else None


def mistypes(table: Schema, document: dict[str, Any]) -> list[Mistype]:
    """Return every value of the wrong type, in the order of the text."""
    decoder = _Decoder(table)
    decoder.object(table.root, document, (), {})
    return decoder.mistypes


def canonical(minor: int, config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration in upstream's order, without fields that upstream leaves out. Raises TypeError for a value
    of the wrong type: the code that builds configurations knows the types."""
    done, mistype = decode(minor, config)
    if mistype is not None:
        raise TypeError(mistype.message)
    return done


def _ordered(kind: Object, values: dict[str, Any]) -> dict[str, Any]:
    """Fields in writing order, without what is not written."""
    done: dict[str, Any] = {}
    for name, known in kind.fields.items():
        value = values.get(name)
        if value is None:
            if known.always:
                done[name] = None if known.many or known.nullable else _always(known)
        elif known.nullable or known.always or (value and not _hollow(value)):
            done[name] = value
    return done


def _always(known: Field) -> Any:
    return PLAIN[known.type]() if known.scalar else {}


def _hollow(value: Any) -> bool:
    """Whether an object would be written without content, as only 3.0 has them: ``{"source": null}``."""
    return isinstance(value, dict) and all(part is None for part in value.values())


def folded(key: str) -> str:
    """As Go compares keys without regard to case: also the long s and the sign of Kelvin are letters."""
    return key.lower().replace("ſ", "s")


_FIRST = {"uint": 0, "size": 0, "filemode": 0}
_LAST = {"uint": 2**64, "size": 2**64, "filemode": 2**32}


def _fits(kind: str, value: Any) -> bool:
    plain = PLAIN[kind]
    if plain is int:
        return type(value) is int and _FIRST.get(kind, -_INT_MAX) <= value < _LAST.get(kind, _INT_MAX)
    return type(value) is plain


def _go_kind(value: Any, known: Field | None) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            integer = known is not None and PLAIN.get(known.type) is int and not known.many
            return f"number {value}" if integer else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


_GO_TYPES = {
    "str": "string",
    "int": "int",
    "bool": "bool",
    "device": "types.Device",
    "fsoption": "types.FilesystemOption",
    "groupname": "types.Group",
    "kernelarg": "types.KernelArgument",
    "luksoption": "types.LuksOption",
    "mountoption": "types.MountOption",
    "noproxy": "types.NoProxyItem",
    "openoption": "types.OpenOption",
    "raidoption": "types.RaidOption",
    "sshkey": "types.SSHAuthorizedKey",
}


_OLD_NAMES = {
    ("PasswdUser", "sshAuthorizedKeys"): "SSHAuthorizedKey",
    ("PasswdUser", "groups"): "Group",
    ("PasswdUser", "create"): "Usercreate",
    ("UserCreate", "groups"): "UsercreateGroup",
    ("Proxy", "noProxy"): "NoProxyItem",
    ("Raid", "devices"): "Device",
    ("Raid", "options"): "RaidOption",
    ("Mount", "options"): "MountOption",
    ("Create", "options"): "CreateOption",
    ("Networkd", "units"): "Networkdunit",
    ("Unit", "dropins"): "SystemdDropin",
}
"""Names of Go's types in 2.2 to 2.4 that are not those of the table, by object and field."""


def _go_type(table: Schema, owner: str, known: Field) -> str:
    if known.type == "NodeOwner":
        return f"types.Node{known.name.title()}"
    if table.version == "3.0.0" and known.type == "Resource":
        return "types.FileContents"
    old = _OLD_NAMES.get((owner, known.name)) if table.version.startswith("2.") else None
    return f"types.{old}" if old else _GO_TYPES.get(known.type, f"types.{known.type}")

"""Translates a typed Butane document into an Ignition config, field by field: :func:`translate`.

``ignition/butane/transpile.py`` begins here; mounts, trees, quadlets and the sugar of variants then change the
:class:`Draft`. Keys map by name; only resources, keys from files and unit contents have their own rules. Source:
coreos/butane ``base/v0_*/translate.go``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from syncline.ignition.butane import messages as m
from syncline.ignition.butane.encoding import data_url, escaped
from syncline.ignition.butane.files import Files, LocalError, read_local
from syncline.ignition.butane.merging import Config, Part, merged
from syncline.ignition.butane.places import Finding, Places, error
from syncline.ignition.butane.schema import Field, Struct
from syncline.ignition.butane.variants import Spec
from syncline.ignition.report import Path
from syncline.ignition.schema import Schema, schema

Value = dict[str, Any]

_ALWAYS_PLACED: Final = frozenset({"File", "Directory", "Link"})
_ALWAYS_PLACED_LATER: Final = frozenset({"PasswdUser", "Unit", "Dropin"})
"""Objects whose place is recorded even when they are empty: those that upstream translates by functions of their own,
from base 5 on also the later ones."""

_LINES: Final = re.compile("\r?\n")


class Draft:
    """The translation so far. ``config`` has a key if upstream's value is not nil."""

    def __init__(self, spec: Spec, document: Value, files: Files | None, *, compress: bool) -> None:
        self.spec = spec
        self.document = document
        self.files = files
        self.compress = compress
        self.config: Config = {}
        self.places: Places = {}
        self.findings: list[Finding] = []

    @property
    def schema(self) -> Schema:
        return schema(self.spec.base - 1)

    @property
    def fatal(self) -> bool:
        return any(finding.fatal for finding in self.findings)

    def encoded(self, data: bytes, compression: str | None = None) -> tuple[str, str | None]:
        return data_url(data, compression, auto_compression=self.compress)

    def lay_over(self, generated: Part) -> None:
        """Merge the config so far over a generated one."""
        done = merged(self.schema, generated, Part(self.config, self.places))
        self.config, self.places = done.config, done.places

    def section(self, *names: str) -> list[Any]:
        """Return a list of the config to append to, created if missing."""
        value: Any = self.config
        for name in names[:-1]:
            value = value.setdefault(name, {})
        items: list[Any] = value.setdefault(names[-1], [])
        return items


def text_bytes(text: str) -> bytes:
    """Return the bytes of a text with surrogate escapes."""
    return text.encode("utf-8", "surrogateescape")


def bytes_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def translate(draft: Draft, document_type: Struct) -> None:
    """Fill the draft from the plain fields of the document; problems become findings."""
    walk = _Walk(draft)
    config = draft.config
    for known in document_type.fields:
        if known.key not in _SECTIONS or known.struct is None:
            continue
        part = draft.document.get(known.key)
        if part is not None and known.json is not None:
            config[known.json] = walk.struct(known.struct, part, (known.key,), (known.json,))
    config.setdefault("ignition", {})["version"] = draft.spec.ignition_version
    draft.places["ignition", "version"] = ("version",)
    draft.places["ignition",] = ("ignition",)


_SECTIONS: Final = frozenset({"ignition", "kernel_arguments", "passwd", "storage", "systemd"})


class _Walk:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._places = draft.places
        later = _ALWAYS_PLACED_LATER if draft.spec.base >= 5 else frozenset()
        self._always_placed = _ALWAYS_PLACED | later

    def struct(self, kind: Struct, value: Value, source: Path, result: Path) -> Config:
        out: Config = {}
        for known in kind.fields:
            if known.json is None:
                continue
            part = value.get(known.key)
            if part is None:
                if not known.nullable and known.kind in ("str", "int", "bool"):
                    self._places[*result, known.json] = (*source, known.key)
                continue
            out[known.json] = self._part(known, part, (*source, known.key), (*result, known.json))
        match kind.name:
            case "Resource" | "FileContents":
                self._resource(value, out, source, result)
            case "PasswdUser":
                self._keys(value, out, source, result)
            case "Unit" | "Dropin":
                self._contents(value, out, source, result)
        if kind.name in self._always_placed or not _is_zero(kind, value):
            self._places[result] = source
        return out

    def _part(self, known: Field, part: Any, source: Path, result: Path) -> Any:
        if known.kind == "struct":
            assert known.struct is not None
            return self.struct(known.struct, part, source, result)
        if known.kind == "list":
            items = []
            for index, item in enumerate(part):
                at = (*source, index), (*result, index)
                if known.struct is None:
                    self._places[at[1]] = at[0]
                    items.append(item)
                else:
                    items.append(self.struct(known.struct, item, *at))
            self._places[result] = source
            return items
        self._places[result] = source
        return part

    def _resource(self, value: Value, out: Config, source: Path, result: Path) -> None:
        """Convert ``inline`` and ``local`` to a data URL (source, compression)."""
        draft = self._draft
        local, inline = value.get("local"), value.get("inline")
        if local is not None:
            try:
                data = read_local(local, draft.files)
            except LocalError as problem:
                draft.findings.append(error((*source, "local"), str(problem)))
                return
            self._encode(data, out, (*source, "local"), result)
        if inline is not None:
            if draft.spec.base == 1:
                out["source"] = "data:," + escaped(text_bytes(inline))
                self._places[*result, "source"] = (*source, "inline")
                return
            self._encode(text_bytes(inline), out, (*source, "inline"), result)

    def _encode(self, data: bytes, out: Config, source: Path, result: Path) -> None:
        out["source"], compression = self._draft.encoded(data, out.get("compression"))
        self._places[*result, "source"] = source
        if compression is not None:
            out["compression"] = compression
            self._places[*result, "compression"] = source

    def _keys(self, value: Value, out: Config, source: Path, result: Path) -> None:
        """Add lines of local files to the keys, after the inline ones."""
        local = value.get("ssh_authorized_keys_local")
        if not local:
            return
        draft = self._draft
        at = (*source, "ssh_authorized_keys_local")
        self._places[*result, "sshAuthorizedKeys"] = at
        if draft.files is None:
            draft.findings.append(error(at, m.NO_FILES_DIR))
            return
        for index, path in enumerate(local):
            try:
                data = read_local(path, draft.files)
            except LocalError as problem:
                draft.findings.append(error((*at, index), str(problem)))
                continue
            for line in _LINES.split(bytes_text(data)):
                if line:
                    keys = out.setdefault("sshAuthorizedKeys", [])
                    self._places[*result, "sshAuthorizedKeys", len(keys)] = (*at, index)
                    keys.append(line)

    def _contents(self, value: Value, out: Config, source: Path, result: Path) -> None:
        local = value.get("contents_local")
        if not local:
            return
        at = (*source, "contents_local")
        try:
            out["contents"] = bytes_text(read_local(local, self._draft.files))
        except LocalError as problem:
            self._draft.findings.append(error(at, str(problem)))
            return
        self._places[*result, "contents"] = at


def _is_zero(kind: Struct, value: Value) -> bool:
    """Return True if Go would call the object zero."""
    for key, part in value.items():
        known = kind.by_key[key]
        if known.nullable or known.kind in ("list", "map"):
            return False
        if known.kind == "struct":
            if known.struct is not None and not _is_zero(known.struct, part):
                return False
        elif part:
            return False
    return True

"""Makes the table of argocd-server's API: its messages, services, methods and HTTP routes.

Run by a developer when the Argo CD version moves. In come the ``.proto`` files and the Go types of a checkout of Argo
CD; out goes ``argo-api.json.xz`` in ``src/syncline/web/wire/data/``: numbers, names, types and routes, no text. Rows of
messages have the form of ``protobuf.json.xz`` (see ``build_protobuf.py``), which also holds Kubernetes' own messages
that these lead to; those that it lacks come from the folders of Kubernetes' modules (k8s.io/apimachinery). Equal input
gives equal output.

    python tools/build_argo_api.py DIR VERSION MODULE...
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_protobuf import SCALARS, SPECIAL, UNREADABLE, GoField, definition_name, go_types
from build_protobuf import messages_of as kubernetes_messages_of

DATA = Path(__file__).parent.parent / "src" / "syncline" / "web" / "wire" / "data"
KUBERNETES = Path(__file__).parent.parent / "src" / "syncline" / "kube" / "schema" / "data" / "protobuf.json.xz"
TYPES = "pkg/apis/application/v1alpha1"
TYPES_PACKAGE = "github.com.argoproj.argo_cd.v3.pkg.apis.application.v1alpha1"
SHORTER = {
    TYPES_PACKAGE: "argoproj.v1alpha1",
    "github.com.argoproj.argo_cd.server.settings.oidc": "oidc",
}
"""Packages that get a short name in the table."""
SHARED = ("reposerver/repository/repository.proto",)
"""Files outside of ``server`` whose messages the services use."""
INTERNAL = frozenset({"repository.RepoServerService"})
"""Services of these files that argocd-server does not serve."""
EMPTY = "google.protobuf.Empty"
PROTO_NAMES = frozenset({f"{SHORTER[TYPES_PACKAGE]}.ResourceOverride"})
"""Types whose Go code writes JSON in its own way: their fields keep the names of the protobuf file."""
VERBS = ("get", "put", "post", "delete", "patch")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.]+|[^\s]')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


@dataclass(frozen=True)
class ProtoField:
    label: str
    """``required``, ``optional``, ``repeated``, ``map``, ``oneof``, or empty (proto3)."""
    kind: str
    name: str
    number: int
    nullable: bool


class Parser:
    """Reads what the files of Argo CD contain; whatever else the language has stops it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens = _TOKEN.findall(_COMMENT.sub("", _without_text(path.read_text())))
        self._at = 0
        self.package = ""
        self.messages: dict[str, list[ProtoField]] = {}
        self.services: dict[str, dict[str, list[Any]]] = {}
        while self._at < len(self._tokens):
            self._statement()

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _peek(self) -> str:
        return str(self._tokens[self._at])

    def _expect(self, token: str) -> None:
        found = self._next()
        if found != token:
            raise SystemExit(f"{self._path}: {found!r} stands where {token!r} belongs")

    def _until(self, end: str) -> list[str]:
        found = []
        while self._peek() != end:
            found.append(self._next())
        self._at += 1
        return found

    def _statement(self) -> None:
        word = self._next()
        if word == "message":
            name = self._next()
            self._expect("{")
            self.messages[name] = list(self._fields())
        elif word == "service":
            name = self._next()
            self._expect("{")
            self.services[name] = dict(self._methods())
        elif word == "package":
            self.package = self._until(";")[0]
        elif word in ("syntax", "option", "import"):
            self._until(";")
        elif word != ";":
            raise SystemExit(f"{self._path}: cannot read {word!r}")

    def _fields(self, label: str = "") -> Iterator[ProtoField]:
        while self._peek() != "}":
            word = self._next()
            if word == "oneof":
                self._at += 1
                self._expect("{")
                yield from self._fields("oneof")
            elif word in ("reserved", "option"):
                self._until(";")
            elif word != ";":
                yield self._field(word, label)
        self._at += 1

    def _field(self, word: str, label: str) -> ProtoField:
        if word in ("required", "optional", "repeated"):
            label, word = word, self._next()
        if word == "map":
            for token in ("<", "string", ","):
                self._expect(token)
            label, word = "map", self._next()
            self._expect(">")
        if word in ("message", "enum", "group", "extensions"):
            raise SystemExit(f"{self._path}: cannot read a {word} within a message")
        name = self._next()
        self._expect("=")
        number = int(self._next())
        options = " ".join(self._until(";"))
        return ProtoField(label, word.lstrip("."), name, number, "( gogoproto.nullable ) = false" not in options)

    def _methods(self) -> Iterator[tuple[str, list[Any]]]:
        while self._peek() != "}":
            self._expect("rpc")
            name = self._next()
            asked, asks = self._parenthesized()
            self._expect("returns")
            answered, answers = self._parenthesized()
            routes = []
            if self._next() == "{":
                while self._peek() != "}":
                    routes += self._option()
                self._at += 1
                if self._peek() == ";":
                    self._at += 1
            yield name, [asked, answered, ("<" if asks else "") + (">" if answers else ""), routes]
        self._at += 1

    def _parenthesized(self) -> tuple[str, bool]:
        self._expect("(")
        words = self._until(")")
        return words[-1].lstrip("."), words[0] == "stream"

    def _option(self) -> list[list[str]]:
        """The routes of one ``option (google.api.http)``: verb, path, body."""
        word = self._next()
        if word == ";":
            return []
        if self._peek() == "deprecated":
            self._until(";")
            return []
        for token in ("(", "google.api.http", ")"):
            self._expect(token)
        if self._peek().startswith("."):
            verb = self._next().lstrip(".")
            self._expect("=")
            path = json.loads(self._next())
            self._expect(";")
            return [[verb, path, ""]]
        self._expect("=")
        self._expect("{")
        routes = self._bindings()
        self._expect(";")
        return routes

    def _bindings(self) -> list[list[str]]:
        """The rule of one method and its additional ones."""
        verb = path = body = ""
        further: list[list[str]] = []
        while self._peek() != "}":
            key = self._next()
            if key in (";", ","):
                continue
            if key == "additional_bindings":
                self._expect("{")
                further += self._bindings()
                continue
            self._expect(":")
            value = json.loads(self._next())
            if key == "body":
                body = value
            elif key in VERBS:
                verb, path = key, value
            else:
                raise SystemExit(f"{self._path}: cannot read {key!r} of a route")
        self._at += 1
        return [[verb, path, body], *further]


def _without_text(text: str) -> str:
    """Comments begin in texts, too: of the ``go_package`` that nothing here needs."""
    return re.sub(r"(?m)^option go_package.*$", "", text)


def full_name(kind: str, package: str, known: set[str]) -> str:
    """A type as the table names it: a scalar, a message of ours, or Kubernetes' definition."""
    if kind in SCALARS or kind == EMPTY:
        return kind
    if kind.startswith("k8s.io."):
        return definition_name(kind)
    before, _, name = kind.rpartition(".")
    before = before or package
    made = f"{SHORTER.get(before, before)}.{name}"
    if made not in known:
        raise SystemExit(f"no message {made}, which a field or method of package {package} names")
    return made


def generated_row(field: ProtoField, kind: str, go: GoField | None, plain_names: bool) -> list[Any] | None:
    """A field of a Go type; None where its JSON leaves it out."""
    marks = {"map": "{", "repeated": "["}.get(field.label, "")
    if plain_names:
        return [field.number, field.name, kind, marks + "*?"]
    if go is None:
        return [field.number, field.name, kind, UNREADABLE]
    if go.json == "-":
        return None
    embedded = not go.json and go.name in (field.kind.rpartition(".")[2], "OptionalMap", "OptionalArray")
    if embedded:
        return [field.number, "", kind, marks + ("*?" if go.pointer else "") + "~"]
    marks += "*" if go.pointer else ""
    marks += "?" if "omitempty" in go.options else ""
    return [field.number, go.json or go.name, kind, marks + ("0" if "omitzero" in go.options else "")]


def plain_row(field: ProtoField, kind: str) -> list[Any]:
    """A field of a message written by hand: its Go type is generated from the file, and leaves out what is empty."""
    marks = {"map": "{", "repeated": "["}.get(field.label, "")
    if marks or (field.label == "" and kind in SCALARS):
        return [field.number, field.name, kind, marks + ("?" if field.nullable else "")]
    return [field.number, field.name, kind, "*?" if field.nullable else ""]


def messages_of(parsed: list[Parser], folder: Path) -> dict[str, list[list[Any]]]:
    """Every message of the files, by its name in the table."""
    structs, lists = go_types(folder / TYPES)
    known = {f"{SHORTER.get(one.package, one.package)}.{name}" for one in parsed for name in one.messages}
    made: dict[str, list[list[Any]]] = {EMPTY: []}
    for one in parsed:
        for name, fields in one.messages.items():
            full = f"{SHORTER.get(one.package, one.package)}.{name}"
            if full in made:
                raise SystemExit(f"two messages {full}")
            rows: list[list[Any] | None] = []
            for field in fields:
                kind = full_name(field.kind, one.package, known)
                if one.package != TYPES_PACKAGE:
                    rows.append(plain_row(field, kind))
                elif name in lists:
                    rows.append([field.number, "", kind, "[="])
                else:
                    rows.append(
                        generated_row(field, kind, structs.get(name, {}).get(field.number), full in PROTO_NAMES)
                    )
            made[full] = sorted(row for row in rows if row is not None)
    return made


def services_of(parsed: list[Parser]) -> dict[str, dict[str, list[Any]]]:
    known = {f"{SHORTER.get(one.package, one.package)}.{name}" for one in parsed for name in one.messages}
    return {
        f"{one.package}.{name}": {
            method: [full_name(asked, one.package, known), full_name(answered, one.package, known), marks, routes]
            for method, (asked, answered, marks, routes) in methods.items()
        }
        for one in parsed
        for name, methods in one.services.items()
    }


def reached(messages: dict[str, list[list[Any]]], roots: set[str]) -> dict[str, list[list[Any]]]:
    """The messages that the methods lead to; what is Kubernetes' must be in Kubernetes' table."""
    kubernetes = json.loads(lzma.decompress(KUBERNETES.read_bytes()))
    waiting, kept = sorted(roots), set()
    while waiting:
        name = waiting.pop()
        if name in kept or name in SCALARS or name in SPECIAL:
            continue
        if name in kubernetes:
            continue
        if any(UNREADABLE in row[3] for row in messages[name]):
            raise SystemExit(f"{name}: no Go field has the number of one of its fields")
        kept.add(name)
        waiting += [row[2] for row in messages[name]]
    return {name: messages[name] for name in sorted(kept)}


def build(folder: Path, version: str, modules: list[Path]) -> bytes:
    """The table as one line of JSON."""
    served = [Parser(path) for path in sorted((folder / "server").rglob("*.proto"))]
    shared = [Parser(folder / path) for path in (*SHARED, f"{TYPES}/generated.proto")]
    parsed = [*served, *shared]
    services = {name: methods for name, methods in services_of(parsed).items() if name not in INTERNAL}
    messages = messages_of(parsed, folder)
    for path in sorted(path for module in modules for path in module.rglob("generated.proto")):
        messages |= kubernetes_messages_of(path)
    roots = {kind for methods in services.values() for row in methods.values() for kind in row[:2]}
    table = {"version": version, "messages": reached(messages, roots), "services": services}
    return json.dumps(table, separators=(",", ":"), sort_keys=True).encode()


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit("usage: python tools/build_argo_api.py DIR VERSION MODULE...")
    table = build(Path(sys.argv[1]), sys.argv[2], [Path(given) for given in sys.argv[3:]])
    target = DATA / "argo-api.json.xz"
    target.write_bytes(lzma.compress(table, preset=9 | lzma.PRESET_EXTREME))
    read = json.loads(table)
    methods = sum(len(one) for one in read["services"].values())
    sys.stdout.write(
        f"{target.name}: {len(read['messages'])} messages, {len(read['services'])} services, {methods} methods, "
        f"{target.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()

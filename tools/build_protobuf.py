"""Makes the table by which protobuf bodies are read: message → rows of number, JSON name, type and marks.

Marks: ``{`` a map with keys of strings, ``[`` repeated, ``*`` a pointer in Go, ``?`` omitempty, ``0`` omitzero, ``~``
written into its owner (inline), ``=`` stands for its owner (a Go type that is a list).

Run by a developer when the Kubernetes version moves. In come the ``generated.proto`` files and the Go types of
Kubernetes' API modules, fetched by the ordinary Go client into its cache; out goes ``protobuf.json.xz`` beside the
schema data: names, numbers and types, no text. Equal input gives equal output. At the end the modules' own samples,
one full object of each kind, are read by the table and must give their JSON.

    python tools/build_protobuf.py                    fetch the modules by ``go mod download``
    python tools/build_protobuf.py DIR DIR DIR DIR    read them where they already are
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "v0.36.0"
"""Of the modules; it goes with the Kubernetes release of ``build_schema``."""

MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
DATA = Path(__file__).parent.parent / "src" / "syncline" / "kube" / "schema" / "data"

SPECIAL = frozenset(
    f"io.k8s.{name}"
    for name in (
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "apimachinery.pkg.api.resource.Quantity",
        "apimachinery.pkg.apis.meta.v1.Duration",
        "apimachinery.pkg.apis.meta.v1.FieldsV1",
        "apimachinery.pkg.apis.meta.v1.MicroTime",
        "apimachinery.pkg.apis.meta.v1.Time",
        "apimachinery.pkg.runtime.RawExtension",
        "apimachinery.pkg.util.intstr.IntOrString",
    )
)
"""Types whose Go code writes JSON in its own way: their fields keep the names of the protobuf file."""

SAME = {
    "io.k8s.api.admissionregistration.v1alpha1.MatchCondition": "io.k8s.api.admissionregistration.v1.MatchCondition",
    "io.k8s.api.core.v1.List": "io.k8s.apimachinery.pkg.apis.meta.v1.List",
}
"""Go types that are declared as another one's copy."""

UNREADABLE = "!"

ROOTS = "definitions.json.xz"
"""Messages are kept when a definition of this file leads to them."""

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^  (optional|repeated|required|map<string, ?([\w.]+)>) ?([\w.]+)? (\w+) = (\d+)", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{[^\n]*\n(.*?)^\}", re.M | re.S)
_ALIAS = re.compile(r"^type (\w+) \[\]\*?(\w+)$", re.M)
_GO_FIELD = re.compile(r"^\s*(?:(\w+)\s+)?(\*?[\w.\[\]*]+)\s+`(.*)`")
_TAG = re.compile(r'(\w+):"([^"]*)"')

SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
"""What else the files could say (uint64, sint32, enums) they do not, and the build would stop at it."""


@dataclass(frozen=True)
class GoField:
    name: str
    pointer: bool
    json: str
    options: frozenset[str]


def fetched(folder: Path) -> list[Path]:
    """The modules' folders in the Go client's cache."""
    found = []
    for module in MODULES:
        command = ["go", "mod", "download", "-json", f"{module}@{VERSION}"]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        found.append(Path(json.loads(answer.stdout)["Dir"]))
    return found


def definition_name(message: str) -> str:
    """``.k8s.io.api.core.v1.Pod`` → ``io.k8s.api.core.v1.Pod``, as OpenAPI calls it."""
    return "io.k8s." + message.lstrip(".").removeprefix("k8s.io.").replace("_", "-")


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*//.*\n", "", text)


def go_types(folder: Path) -> tuple[dict[str, dict[int, GoField]], set[str]]:
    """Struct → field number → field, and the names of the types that are plain lists."""
    structs: dict[str, dict[int, GoField]] = {}
    lists: set[str] = set()
    for path in sorted(folder.glob("*.go")):
        if path.name.startswith(("generated", "zz_")) or path.name.endswith("_test.go"):
            continue
        text = _without_comments(path.read_text())
        lists |= {match[1] for match in _ALIAS.finditer(text)}
        for match in _STRUCT.finditer(text):
            structs[match[1]] = dict(_go_fields(match[2]))
    return structs, lists


def _go_fields(body: str) -> Iterator[tuple[int, GoField]]:
    for line in body.splitlines():
        match = _GO_FIELD.match(line)
        tags = dict(_TAG.findall(match[3])) if match else {}
        if match is None or tags.get("protobuf", "-") == "-":
            continue
        name, *options = tags.get("json", "").split(",")
        number = int(tags["protobuf"].split(",")[1])
        own = match[1] or match[2].lstrip("*").rpartition(".")[2]
        yield number, GoField(own, match[2].startswith("*"), name, frozenset(options))


def messages_of(path: Path) -> dict[str, list[list[Any]]]:
    """Every message of one ``generated.proto``: rows of number, JSON name, type and marks."""
    text = _without_comments(path.read_text())
    package = definition_name(re.search(r"^package ([\w.]+);", text, re.M)[1])  # type: ignore[index]
    structs, lists = go_types(path.parent)
    made = {}
    for match in _MESSAGE.finditer(text):
        name = f"{package}.{match[1]}"
        known = None if name in SPECIAL else structs.get(match[1], {})
        made[name] = sorted(_row(package, name, field, known, match[1] in lists) for field in _fields(match[2]))
    return made


def _fields(body: str) -> Iterator[tuple[str, str, str, int]]:
    """Label, type, name and number of each field."""
    lines = [line for line in body.splitlines() if line.strip()]
    found = list(_FIELD.finditer(body))
    if len(found) != len([line for line in lines if not line.strip().startswith("reserved")]):
        raise SystemExit(f"cannot read all of:\n{body}")
    for match in found:
        label = "map" if match[2] else match[1]
        yield label, match[2] or match[3], match[4], int(match[5])


def _row(
    package: str, owner: str, field: tuple[str, str, str, int], known: dict[int, GoField] | None, is_list: bool
) -> list[Any]:
    label, kind, name, number = field
    if kind not in SCALARS:
        kind = definition_name(kind) if "." in kind else f"{package}.{kind}"
    marks = {"map": "{", "repeated": "["}.get(label, "")
    if is_list:
        return [number, "", kind, marks + "="]
    if known is None:
        return [number, name, kind, marks + "*"]
    go = known.get(number)
    if go is None or go.json == "-":
        return [number, name, kind, UNREADABLE]
    if "inline" in go.options:
        return [number, "", kind, marks + ("*" if go.pointer else "") + "~"]
    marks += "*" if go.pointer else ""
    marks += "?" if "omitempty" in go.options else ""
    return [number, go.json or go.name, kind, marks + ("0" if "omitzero" in go.options else "")]


def reached(messages: dict[str, list[list[Any]]], roots: set[str]) -> dict[str, list[list[Any]]]:
    """The messages that the roots lead to, by name."""
    waiting, kept = sorted(roots & messages.keys()), set()
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        if any(row[3] == UNREADABLE for row in messages[name]):
            raise SystemExit(f"{name}: its Go type does not say how it is written as JSON; see SPECIAL and SAME")
        waiting += [row[2] for row in messages[name] if row[2] not in SCALARS]
    return {name: messages[name] for name in sorted(kept)}


def build(folders: list[Path]) -> bytes:
    """The table as one line of JSON."""
    messages: dict[str, list[list[Any]]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("generated.proto")):
            if "testing" not in path.parts and "testdata" not in path.parts and "testapigroup" not in path.parts:
                messages |= messages_of(path)
    for name, other in SAME.items():
        messages[name] = messages[other]
    roots = set(json.loads(lzma.decompress((DATA / ROOTS).read_bytes())))
    return json.dumps(reached(messages, roots), separators=(",", ":"), sort_keys=True).encode()


def disagreeing(folders: list[Path]) -> Iterator[str]:
    """The samples of the modules (one full object of each kind, as protobuf and as JSON) that are read otherwise."""
    from syncline.cluster.serving.protobuf import decode
    from syncline.kube.errors import BadRequest

    for path in sorted(path for folder in folders for path in folder.rglob("testdata/HEAD/*.pb")):
        try:
            read = decode(path.read_bytes())
        except BadRequest as error:
            if "is registered for version" not in str(error) and "typeMeta" not in str(error):
                yield f"{path.stem}: {error}"
            continue
        if read != json.loads(path.with_suffix(".json").read_text()):
            yield f"{path.stem}: another object"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(given) for given in sys.argv[1:]] or fetched(Path(folder))
        table = build(folders)
    target = DATA / "protobuf.json.xz"
    target.write_bytes(lzma.compress(table, preset=9 | lzma.PRESET_EXTREME))
    wrong = list(disagreeing(folders))
    if wrong:
        raise SystemExit("\n".join(wrong))
    sys.stdout.write(f"{target.name}: {len(json.loads(table))} messages, {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()

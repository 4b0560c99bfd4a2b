"""Collects possible Secret values from the files of a source, to mask them in its errors: :func:`undisclosing`.

A failed render has no objects to take Secrets from, and its files may be unparsable: so the texts are scanned line by
line, rather with too many results than too few. ``sources/rendering/renderer.py`` calls it after a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from syncline.base.masking import Masker, bounded, credential_values, decoded
from syncline.sources.errors import SourceError
from syncline.sources.tree import Entry, Tree

MAX_FILES = 500
MAX_BYTES = 4 * 1024**2
"""Bounds of what is looked through; beyond, a file named like a manifest goes first."""
MAX_FILE = 512 * 1024
MAX_MESSAGE = 1200
"""Characters of an error that are kept."""
TEXTS = (".yaml", ".yml", ".json", ".jsonnet", ".libsonnet", ".tpl", ".env", ".txt", ".properties", ".conf", ".cfg")
OTHERS = (".ini", ".toml", ".key", ".pem", ".bu", ".sh", ".lua", ".cue", ".xml")
WHOLE_LINE = 8
"""Characters from which on a line without a key counts as a value."""

_SECRET = re.compile(
    r"""\bkind["']?\s*[:=]\s*["']?Secret(?:List)?\b|\bsecretGenerator\b|path["']?\s*:\s*["']?/(?:data|stringData)\b"""
)
_DOCUMENT = re.compile(r"^---(?:\s|$)", re.MULTILINE)
_PLAIN = frozenset(
    [
        "apiVersion",
        "fieldPath",
        "fieldPaths",
        "kind",
        "name",
        "namespace",
        "type",
        "immutable",
        "op",
        "path",
        "generateName",
        "version",
        "group",
        "behavior",
        "options",
        "labelSelector",
        "annotationSelector",
        "resources",
        "bases",
        "components",
        "namePrefix",
        "nameSuffix",
        "local",
        "disableNameSuffixHash",
    ]
)
_LINE = re.compile(r"""^\s*(?:-\s+)?["']?([^\s:"'=]+)["']?\s*(?::(?:\s+|$)|=)\s*(.*)$""")
_FIELDS = ("data.", "stringData.", "metadata.", "spec.")
"""Beginnings of field paths, which are no values."""
_VALUES_USED = re.compile(r"\.Values((?:\.[A-Za-z_]\w*)+)|index\s+\.Values\s+((?:\"[^\"]+\"\s*)+)")
_LITERAL = re.compile(r""""((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""")
_NAMED = re.compile(r"""(?:apiVersion|kind|name|namespace|type|import|importstr)["']?\s*:?\s*$""")
_FROM_FILE = re.compile(r"""^[ \t]*-[ \t]+["']?(?:[\w.-]+=)?([\w./-]+)["']?[ \t]*$""", re.MULTILINE)


def undisclosing(error: SourceError, trees: Iterable[Tree], given: Iterable[tuple[str, str]]) -> SourceError:
    """Return the error with all secrets of ``trees`` and parameters (name and value) masked."""
    mask = Masker(lambda: disclosed(_texts(trees), given))
    message, subject = mask(error.message), mask(error.subject)
    return SourceError(
        error.problem,
        bounded(message, MAX_MESSAGE),
        subject=subject,
        field=error.field,
        fix=mask(error.fix),
        position=error.position,
    )


def _texts(trees: Iterable[Tree]) -> Iterator[tuple[str, str]]:
    files = left = 0
    for tree in trees:
        fitting = [
            entry
            for entry in tree.entries
            if (entry.is_file and entry.size <= MAX_FILE and entry.path.endswith((*TEXTS, *OTHERS)))
            or "." not in entry.path.rpartition("/")[2].lstrip(".")
        ]
        fitting.sort(key=lambda entry: (not entry.path.endswith(TEXTS), entry.path))
        chosen = []
        for entry in fitting:
            if files >= MAX_FILES or left + entry.size > MAX_BYTES:
                break
            files, left = files + 1, left + entry.size
            chosen.append(entry)
        yield from _read(tree, chosen)


def _read(tree: Tree, chosen: list[Entry]) -> Iterator[tuple[str, str]]:
    try:
        contents: Mapping[str, bytes] = tree.read(chosen) if chosen else {}
    except SourceError:
        return  # then what was read before is all there is
    for path, content in contents.items():
        if b"\0" not in content:
            yield path, content.decode("utf-8", "replace")


def disclosed(texts: Iterable[tuple[str, str]], given: Iterable[tuple[str, str]] = ()) -> Iterator[str]:
    """Yield secret values in ``texts`` (path and content of files), and in ``given`` (name and value of parameters)."""
    files = list(texts)
    wanted = {name for _, text in files for name in _values_named(text)}
    filed = {name for _, text in files if "secretGenerator" in text for name in _FROM_FILE.findall(text)}
    makes = any(_SECRET.search(text) is not None for _, text in files)
    for path, text in files:
        yield from credential_values(text)
        yield from _below_names(text)
        if path.endswith((".jsonnet", ".libsonnet")):
            yield from _literals(text) if makes else ()
            continue
        for document in _DOCUMENT.split(text):
            if _SECRET.search(document) is not None:
                yield from _scalars(document)
        if any(path == name or path.endswith(f"/{name.removeprefix('./')}") for name in filed):
            yield from _scalars(text)
            yield text
        if wanted:
            yield from _of_keys(text, wanted)
    for name, value in given:
        yield from credential_values(f"{name.rpartition('.')[2]}={value}" if "\n" not in value else value)
        if name.rpartition(".")[2] in wanted or (makes and len(value) >= WHOLE_LINE and " " not in value):
            yield value


_NAMES = re.compile(r"(?i)(?:pass|pwd|secret|token|key|credential|auth)")


def _below_names(text: str) -> Iterator[str]:
    """Yield the values of a block whose key is the name of a credential."""
    inside = -1
    for line in text.splitlines():
        found = _LINE.match(line)
        indent = len(line) - len(line.lstrip())
        if inside >= 0 and line.strip() and indent <= inside:
            inside = -1
        if inside >= 0 and found is not None and found[2].strip() and found[1] not in _PLAIN:
            yield found[2].strip().strip("\"'")
        elif inside < 0 and found is not None and not found[2].strip() and _NAMES.search(found[1]) is not None:
            inside = indent


def _values_named(text: str) -> Iterator[str]:
    """Yield the last names of chart values that its Secrets use."""
    for document in _DOCUMENT.split(text):
        if "{{" in document and _SECRET.search(document) is not None:
            for dotted, listed in _VALUES_USED.findall(document):
                yield (dotted or listed.replace('"', " ")).replace(".", " ").split()[-1]


def _scalars(text: str) -> Iterator[str]:
    """Yield everything in the text of a Secret but keys and identity."""
    for line in text.splitlines():
        found = _LINE.match(line)
        value = (found[2] if found is not None else line).strip().removeprefix("- ")
        if found is not None and found[1] in _PLAIN and "{" not in value and "," not in value:
            continue
        if value.startswith(("{", "[")) or "{" in line:
            yield from (one for literal in _flow(line) for one in _both(literal))
            continue
        bare = re.split(r"\s#", value)[0].strip().strip("\"'")
        if "{{" not in bare and not bare.startswith(_FIELDS) and (found is not None or len(bare) >= WHOLE_LINE):
            yield from _both(bare)
            yield from _both(bare.partition("=")[2])


def _both(text: str) -> tuple[str, ...]:
    plain = decoded(text)
    return (text, plain) if plain else (text,)


def _flow(line: str) -> Iterator[str]:
    """Yield the values of one-line mappings: ``{kind: Secret, stringData: {pin: 1234-5678}}``."""
    for key, value in re.findall(
        r"""(?<![\w./-])["']?([\w./-]+)["']?\s{0,20}:\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,{}\[\]]+)""", line
    ):
        if key not in _PLAIN:
            yield value.strip("\"'")


def _literals(text: str) -> Iterator[str]:
    """Yield the literals without spaces of a program that creates Secrets; with spaces they are messages."""
    for found in _LITERAL.finditer(text):
        value = found[1] or found[2] or ""
        named = _NAMED.search(text[max(found.start() - 40, 0) : found.start()]) is not None
        if not named and len(value) >= WHOLE_LINE and not any(letter.isspace() for letter in value):
            yield from _both(value)


def _of_keys(text: str, names: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is not None and found[1] in names and found[2].strip():
            yield found[2].strip().strip("\"'")

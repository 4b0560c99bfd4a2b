"""Decodes the text of a Butane document like go-yaml v3, by the tables of ``ignition/butane/schema.py``.

``ignition/butane/transpile.py`` calls :func:`read_document` once and :func:`decode` twice, for the header and for the
whole. Values are dicts that have a key only if the document sets it; bytes that are no UTF-8 are surrogate escapes.
Duplicate keys are errors. Only known keys are followed, so the recursion does not depend on the input.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from syncline.ignition.butane.scalars import OLD_BOOLS, Plain, ScalarError, resolve
from syncline.ignition.butane.schema import Field, Struct
from syncline.kube.yaml.nodes import (
    AliasNode,
    Budget,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    YamlError,
    read_first,
)

Value = dict[str, Any]

BUDGET: Final = Budget(depth=10_000)
"""go-yaml allows 10,000 levels; keys it is unknown may be nested that deep."""

MAX_PROBLEMS: Final = 200
"""Type errors that are reported; upstream tells all of them."""

_PREFIX: Final = "tag:yaml.org,2002:"


class DecodeError(ValueError):
    """The text is not YAML, or its values have the wrong types.

    The message is go-yaml's, prefixed with ``yaml:``; ``line`` is the first line it names, 0 if none.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line
        super().__init__(f"yaml: {message}")


def read_document(source: bytes) -> Node | None:
    """Return the root of the first document, None for an empty one; ignore the rest. Raises :class:`DecodeError`."""
    if len(source) > BUDGET.bytes:
        raise DecodeError(f"the text has {len(source)} bytes, at most {BUDGET.bytes} are read")
    mended = _Mended(source)
    while True:
        try:
            root = read_first(mended.source, budget=BUDGET)
            if not mended.broken():
                _check_behind(mended.source)
                return mended.restored(root)
        except YamlError as error:
            if not mended.mend(error) and not mended.broken():
                raise _syntax_error(error, mended.source) from None


MAX_COLONS: Final = 16
"""The text is read again for each of them."""

_STAND_INS: Final = range(0xE000, 0xE100)
_LATER_MARK: Final = re.compile(rb"(?:[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9])\xef\xbb\xbf")
_MARK_OF_LINE: Final = re.compile("(?<=[\r\n\x85\u2028\u2029])\ufeff")


class _Mended:
    """The source, changed where libyaml and go-yaml differ about plain text in brackets. In ``[a:, b]`` go-yaml reads
    the colon as text: it is hidden. In ``{a: b?c}`` the question mark ends the text: it is replaced by a brace, which
    is an error, too. A byte order mark at the start of a later line is text, which libyaml skips."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._text = ""
        self._stand_in = self._mark = ""
        self._hidden = 0
        self._broken = False
        if _LATER_MARK.search(source) and self._begin():
            start = 1 if self.source.startswith(codecs.BOM_UTF8) else 0
            self._text = _MARK_OF_LINE.sub(self._mark, self._text)
            self.source = codecs.BOM_UTF8 * start + self._text.encode()
            self._hidden = 1

    def mend(self, error: YamlError) -> bool:
        """Hide the colon of ``error``; return False if the error is another one."""
        cause = error.__cause__
        if not isinstance(cause, yaml.scanner.ScannerError) or cause.problem != "found unexpected ':'":
            return False
        if not self._stand_in and not self._begin():
            return False
        at = cause.problem_mark.index if cause.problem_mark is not None else 0
        if self._hidden >= MAX_COLONS or self._text[at : at + 1] != ":":
            return False
        self._hidden += 1
        self._text = self._text[:at] + self._stand_in + self._text[at + 1 :]
        self.source = self._text.encode()
        return True

    def _begin(self) -> bool:
        try:
            self._text = self.source.decode("utf-8-sig")
        except UnicodeDecodeError:
            return False
        free = [chr(code) for code in _STAND_INS if chr(code) not in self._text]
        if len(free) < 2:
            return False
        self._stand_in, self._mark = free[:2]
        return True

    def broken(self) -> bool:
        """Return True if a question mark was replaced, so that the text must be parsed again, with an error."""
        if self._broken or b"?" not in self.source or not (self._text or self._begin()):
            return False
        at = _question_in_flow(self._text)
        if at < 0:
            return False
        self._broken = True
        self._text = self._text[:at] + "{" + self._text[at + 1 :]
        self.source = self._text.encode()
        return True

    def restored(self, root: Node | None) -> Node | None:
        """Return ``root`` with the colons and marks restored."""
        pending = [root] if root is not None and self._hidden else []
        while pending:
            node = pending.pop()
            if isinstance(node, ScalarNode):
                node.value = node.value.replace(self._stand_in, ":").replace(self._mark, "\ufeff")
            elif isinstance(node, SequenceNode):
                pending.extend(node.items)
            elif isinstance(node, MappingNode):
                pending.extend(part for pair in node.pairs for part in pair)
        return root


def _question_in_flow(text: str) -> int:
    """Return the position of the first question mark inside plain text in brackets, or -1."""
    depth = 0
    try:
        for token in _tokens(text):
            if isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                depth += 1
            elif isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken):
                depth -= 1
            elif depth > 0 and isinstance(token, yaml.ScalarToken) and token.plain:
                at = text.find("?", token.start_mark.index, token.end_mark.index)
                if at >= 0:
                    return at
    except yaml.YAMLError:
        pass  # the parser reports the error
    return -1


def _syntax_error(error: YamlError, source: bytes) -> DecodeError:
    """Return the error with go-yaml's line: that of the context if there is one, counted from 0 for parser errors."""
    cause = error.__cause__
    if isinstance(cause, yaml.parser.ParserError):
        cause = _scanned_ahead(source, cause) or cause
    if isinstance(cause, yaml.MarkedYAMLError):
        return _marked_error(cause)
    if cause is not None:
        return DecodeError(_reader_problem(cause))
    if "%YAML" in error.message:
        return _placed("found incompatible YAML document", error.position.line - 1)
    return DecodeError(error.message)


def _marked_error(cause: yaml.MarkedYAMLError) -> DecodeError:
    line = 0
    for mark in (cause.context_mark, cause.problem_mark):
        if mark is not None and mark.line:
            line = mark.line + (1 if isinstance(cause, yaml.scanner.ScannerError) else 0)
            break
    return _placed(cause.problem or "unknown problem parsing YAML content", line)


def _placed(message: str, line: int) -> DecodeError:
    return DecodeError(f"line {line}: {message}" if line > 0 else message, max(line, 0))


def _tokens(source: bytes | str) -> Iterator[yaml.Token]:
    yield from yaml.scan(source, Loader=getattr(yaml, "CLoader", yaml.Loader))


def _check_behind(source: bytes) -> None:
    """Scan the end of the first document and two more tokens, although the next document is not read. Raises
    :class:`DecodeError`."""
    if not _MAY_END.search(source):
        return
    left, begun = _LOOKAHEAD, False
    try:
        for token in _tokens(source):
            ends = isinstance(token, yaml.DocumentEndToken) or (begun and isinstance(token, _BEGINS))
            if ends or left < _LOOKAHEAD:
                left -= 1
                if not left:
                    return
            begun = begun or not isinstance(token, yaml.StreamStartToken | yaml.DirectiveToken)
    except yaml.scanner.ScannerError as error:
        if left < _LOOKAHEAD:
            raise _marked_error(error) from None
    except yaml.YAMLError:
        return


_MAY_END: Final = re.compile(rb"(?m)(?:^|[\r\x85])(?:---|\.\.\.)")
_BEGINS: Final = (yaml.DocumentStartToken, yaml.DirectiveToken)

_LOOKAHEAD: Final = 3
"""The token at hand and two more."""


def _scanned_ahead(source: bytes, found: yaml.MarkedYAMLError) -> yaml.MarkedYAMLError | None:
    """Return the error in the two tokens that go-yaml scans ahead for comments, which it reports first."""
    mark = found.problem_mark
    left = _LOOKAHEAD
    opened = False
    try:
        for token in _tokens(source):
            begins = token.start_mark
            if isinstance(token, yaml.BlockEndToken) and left == _LOOKAHEAD:
                continue  # it stands where the token stands that ended the block, and is never the wrong one
            if mark is not None and (begins.line, begins.column) >= (mark.line, mark.column):
                if opened and isinstance(token, yaml.ValueToken):
                    left = _LOOKAHEAD  # the mapping that a colon without key opened was fine, the colon is not
                left -= 1
                opened = isinstance(token, yaml.BlockMappingStartToken)
                if not left:
                    break
    except yaml.scanner.ScannerError as error:
        return error
    except yaml.YAMLError:
        return None
    return None


def _reader_problem(cause: BaseException) -> str:
    reason = getattr(cause, "reason", None)
    return str(reason) if reason else " ".join(str(cause).split())


def decode(root: Node | None, struct: Struct) -> Value:
    """Return the typed value of a document; unknown keys are dropped. Raises :class:`DecodeError`."""
    if root is None:
        return {}
    decoder = _Decoder()
    value: Value = {}
    try:
        decoder.into_struct(root, struct, value)
    except ScalarError as error:
        raise DecodeError(str(error)) from None
    if decoder.problems:
        lines = "".join(f"\n  line {line}: {text}" for line, text in decoder.problems)
        raise DecodeError(f"unmarshal errors:{lines}", decoder.problems[0][0])
    return value


class _Decoder:
    """Decodes nodes once. The ``good`` results mean, as in go-yaml, that a value was set."""

    def __init__(self) -> None:
        self.problems: list[tuple[int, str]] = []
        self._decoded = 0
        self._through_aliases = 0
        self._alias_depth = 0
        self._following: set[int] = set()
        self._merged: set[str] | None = None

    def _problem(self, line: int, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append((line, text))

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        self._decoded += 1
        if self._alias_depth:
            self._through_aliases += 1
        if self._through_aliases <= 100 or self._decoded <= 1000:
            return
        if self._through_aliases / self._decoded > _allowed_alias_ratio(self._decoded):
            raise ScalarError("document contains excessive aliasing")

    def _enter(self, node: Node) -> Node:
        """Count the node; follow an alias until :meth:`_leave`."""
        self._count()
        if not isinstance(node, AliasNode):
            return node
        if id(node) in self._following:
            raise ScalarError(f"anchor '{node.name}' value contains itself")
        self._following.add(id(node))
        self._alias_depth += 1
        self._count()
        return node.target

    def _leave(self, node: Node) -> None:
        if isinstance(node, AliasNode):
            self._following.discard(id(node))
            self._alias_depth -= 1

    def field(self, node: Node, field: Field, out: Value) -> None:
        """Decode ``node`` into ``out[field.key]``."""
        if field.kind == "struct":
            assert field.struct is not None
            inner: Value = out.get(field.key, {})
            good = self.into_struct(node, field.struct, inner, field.type_name)
            if good:
                out[field.key] = inner
            elif field.nullable and is_null(node):
                out.pop(field.key, None)
            return
        target = self._enter(node)
        try:
            if field.kind == "list":
                items = self._list(target, field)
                if items is not None:
                    out[field.key] = items
                elif is_null(target):
                    out.pop(field.key, None)
            elif field.kind == "map":
                self._map(target, field, out)
            else:
                good, value = self._scalar(target, field.kind, field.type_name)
                if good:
                    out[field.key] = value
                elif field.nullable and is_null(target):
                    out.pop(field.key, None)
        finally:
            self._leave(node)

    def into_struct(self, node: Node, struct: Struct, out: Value, type_name: str = "") -> bool:
        target = self._enter(node)
        try:
            if isinstance(target, MappingNode):
                return self._mapping(target, struct, out)
            if isinstance(target, SequenceNode):
                self._mistyped(target, type_name or struct.type_name)
            else:
                self._scalar(target, "struct", type_name or struct.type_name)
            return False
        finally:
            self._leave(node)

    def _list(self, node: Node, field: Field) -> list[Any] | None:
        if not isinstance(node, SequenceNode):
            if isinstance(node, ScalarNode):
                self._scalar(node, "list", field.type_name)
            else:
                self._mistyped(node, field.type_name)
            return None
        items: list[Any] = []
        for item in node.items:
            if field.struct is not None:
                value: Value = {}
                if self.into_struct(item, field.struct, value):
                    items.append(value)
                continue
            good, text = self._text(item, field.type_name.removeprefix("[]"))
            if good:
                items.append(text)
        return items

    def _text(self, node: Node, type_name: str) -> tuple[bool, str]:
        target = self._enter(node)
        good, text = self._scalar(target, "str", type_name)
        self._leave(node)
        return good, text if isinstance(text, str) else ""

    # -- mappings ------------------------------------------------------------------------------------------------

    def _unique(self, node: MappingNode) -> bool:
        lines: dict[tuple[str, str], list[int]] = {}
        for key, _ in node.pairs:
            lines.setdefault(_identity(key), []).append(key.line)
        if len(lines) == len(node.pairs):
            return True
        for key, _ in node.pairs:
            identity = _identity(key)
            line, *later = lines[identity]
            lines[identity] = later
            text = json.dumps(identity[1], ensure_ascii=False)
            for other in later[:MAX_PROBLEMS]:
                self._problem(other, f"mapping key {text} already defined at line {line}")
            if len(self.problems) >= MAX_PROBLEMS:
                break
        return False

    def _mapping(self, node: MappingNode, struct: Struct, out: Value) -> bool:
        if not self._unique(node):
            return False
        outer, self._merged = self._merged, None
        merge: Node | None = None
        done: set[str] = set()
        for key_node, value_node in node.pairs:
            if _is_merge(key_node):
                merge = value_node
                continue
            good, key = self._text(key_node, "string")
            if not good:
                continue
            if outer is not None:
                if key in outer:
                    continue
                outer.add(key)
            field = struct.by_key.get(key)
            if field is None:
                continue
            if key in done:
                self._problem(key_node.line, f"field {key} already set in type {struct.type_name}")
                continue
            done.add(key)
            self.field(value_node, field, out)
        self._merged = outer
        if merge is not None:
            self._merge(node, merge, struct, out)
        return True

    def _merge(self, parent: MappingNode, merge: Node, struct: Struct, out: Value) -> None:
        """Apply ``<<``: keys of the mapping itself win, then the earlier of several merged ones."""
        before = self._merged
        if before is None:
            self._merged = {key.value for key, _ in parent.pairs if isinstance(key, ScalarNode)}
        for item in merge.items if isinstance(merge, SequenceNode) else [merge]:
            target = item.target if isinstance(item, AliasNode) else item
            if not isinstance(target, MappingNode):
                raise ScalarError("map merge requires map or sequence of maps as the value")
            self.into_struct(item, struct, out)
        self._merged = before

    def _map(self, node: Node, field: Field, out: Value) -> None:
        """Decode a map of texts; a null value becomes an empty text."""
        if not isinstance(node, MappingNode):
            if isinstance(node, ScalarNode):
                self._scalar(node, "map", field.type_name)
            else:
                self._mistyped(node, field.type_name)
            if is_null(node):
                out.pop(field.key, None)
            return
        if self._unique(node):
            self._fill(node, out.setdefault(field.key, {}), skip=set())

    def _fill(self, node: MappingNode, out: dict[str, str], skip: set[str]) -> None:
        merge: Node | None = None
        for key_node, value_node in node.pairs:
            if _is_merge(key_node):
                merge = value_node
                continue
            good, key = self._text(key_node, "string")
            if not good or key in skip:
                continue
            skip.add(key)
            good, text = self._text(value_node, "string")
            if good or is_null(value_node):
                out[key] = text
        if merge is None:
            return
        for item in merge.items if isinstance(merge, SequenceNode) else [merge]:
            target = self._enter(item)
            if not isinstance(target, MappingNode):
                raise ScalarError("map merge requires map or sequence of maps as the value")
            if self._unique(target):
                self._fill(target, out, skip)
            self._leave(item)

    # -- scalars -------------------------------------------------------------------------------------------------

    def _scalar(self, node: Node, kind: str, type_name: str) -> tuple[bool, Plain]:
        if not isinstance(node, ScalarNode):
            self._mistyped(node, type_name)
            return False, None
        tag, value = scalar_word(node)
        if value is None:
            return False, None
        if kind == "str":
            return True, str(value) if tag == "!!binary" else node.value
        if kind == "bool":
            if isinstance(value, bool):
                return True, value
            if isinstance(value, str) and value in OLD_BOOLS and tag != "!!timestamp":
                return True, OLD_BOOLS[value]
        if kind == "int" and not isinstance(value, bool):
            number = _int64(value)
            if number is not None:
                return True, number
        self._problem(node.line, f"cannot unmarshal {tag} `{_shortened(node.value)}` into {type_name}")
        return False, None

    def _mistyped(self, node: Node, type_name: str) -> None:
        """Report a wrong type; for a mapping check its keys first."""
        if isinstance(node, MappingNode) and not self._unique(node):
            return
        tag = "!!seq" if isinstance(node, SequenceNode) else "!!map"
        written = getattr(node, "tag", "")
        if written.startswith(_PREFIX):
            tag = "!!" + written[len(_PREFIX) :]
        elif written and written != "!":
            tag = written
        shown = "" if tag in ("!!seq", "!!map") else " ``"
        self._problem(node.line, f"cannot unmarshal {tag}{shown} into {type_name}")


def scalar_word(node: ScalarNode) -> tuple[str, Plain]:
    """Return short tag and value of a scalar; quoted text is text."""
    tag = "" if node.tag == "!" else node.tag
    if not tag:
        if node.style in ("'", '"', "|", ">"):
            return "!!str", node.value
        return resolve("", node.value)
    return resolve(tag, node.value)


def is_null(node: Node) -> bool:
    """Return True if the node, or the target of its alias, is null."""
    if isinstance(node, AliasNode):
        node = node.target
    return isinstance(node, ScalarNode) and scalar_word(node)[0] == "!!null"


def _is_merge(node: Node) -> bool:
    if not isinstance(node, ScalarNode) or node.value != "<<":
        return False
    if node.tag in ("", "!"):
        return node.style not in ("'", '"', "|", ">")
    return node.tag == _PREFIX + "merge"


def _identity(key: Node) -> tuple[str, str]:
    """Return the key by which go-yaml compares keys: kind of node and text."""
    if isinstance(key, ScalarNode):
        return "scalar", key.value
    if isinstance(key, AliasNode):
        return "alias", key.name
    return type(key).__name__, ""


def _int64(value: Plain) -> int | None:
    """Convert like Go on amd64: floats are truncated, and numbers out of range become the smallest integer."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    if isinstance(value, float) and value <= 2.0**63:
        return int(value) if -(2.0**63) <= value < 2.0**63 else -(2**63)
    return None


def _shortened(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return text if len(raw) <= 10 else raw[:7].decode("utf-8", "surrogateescape") + "..."


_RATIO_LOW: Final = 400_000
_RATIO_HIGH: Final = 4_000_000


def _allowed_alias_ratio(decoded: int) -> float:
    """Return the permitted share of values from aliases: 99 % in documents of usual size, 10 % in huge ones."""
    if decoded <= _RATIO_LOW:
        return 0.99
    if decoded >= _RATIO_HIGH:
        return 0.10
    return 0.99 - 0.89 * ((decoded - _RATIO_LOW) / (_RATIO_HIGH - _RATIO_LOW))

"""Parses an expression into its tree; macros become comprehensions. :func:`parse`.

Called by ``program``. It returns the root :class:`Node` or raises :class:`CelError`. Depth and length of the text are
limited. Source: the CEL language definition and cel-go's ``parser`` and ``ext``.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from syncline.kube.cel.nodes import CelError, Node, dotted, located, walk

MAX_DEPTH = 60
MAX_CODE_POINTS = 100_000
MAX_REPEATED = 2_000
"""The most nodes duplicated by macros: ``optMap`` and ``sortBy`` write their operand twice, so that a chain of them
grows exponentially."""

ACCU = "@result"
_TOKEN = re.compile(
    r"""(?P<space>[\s]+|//[^\n]*)
    |(?P<num>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)|\d+[uU]?)
    |(?P<str>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"[\s\S]*?(?<!\\)\"\"\"|'''[\s\S]*?(?<!\\)'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<raw>[rR](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>\|\||&&|<=|>=|==|!=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE,
)
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    )
)
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "?": "?"}
_ESCAPES |= {'"': '"', "'": "'", "`": "`"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)


class UInt(int):
    """An unsigned integer, a type of its own in CEL."""


def parse(text: str, *, bindings: bool = False, extended: bool = True) -> Node:
    """Return the tree of an expression; raises :class:`CelError`. ``bindings``: ``cel.bind`` is allowed;
    ``extended``: so are loops with two variables and ``sortBy``."""
    if len(text) > MAX_CODE_POINTS:
        raise CelError(f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}")
    return _Parser(text, bindings, _MACROS if extended else _STANDARD_MACROS).whole()


UNUSED = "#unused"
BEGINNINGS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
"""The tokens that may begin an expression, in the words of cel-go's grammar."""


def _balanced(function: str, terms: list[Node], places: list[int]) -> Node:
    """Return a long chain of conditions as a shallow tree; ``places``: positions of the operators."""
    if not places:
        return terms[0]
    middle = len(places) // 2
    left = _balanced(function, terms[: middle + 1], places[:middle])
    right = _balanced(function, terms[middle + 1 :], places[middle + 1 :])
    return Node("call", places[middle], function, [left, right])


class _Parser:
    def __init__(self, text: str, bindings: bool, macros: dict[tuple[str, bool, int], Any]) -> None:
        self._text = text
        self._bindings, self._macros = bindings, macros
        self._tokens = self._lex()
        self._next = 0
        self._depth = 0
        self._repeated = 0

    # -- tokens ---------------------------------------------------------------------------------------------------

    def _lex(self) -> list[tuple[str, str, int]]:
        found: list[tuple[str, str, int]] = []
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._error(at, f"Syntax error: token recognition error at: '{self._text[at]}'")
            kind = match.lastgroup or ""
            if kind != "space":
                found.append(("str" if kind == "raw" else kind, match.group(), at))
            at = match.end()
        found.append(("end", "<EOF>", len(self._text)))
        return found

    def _error(self, at: int, message: str) -> CelError:
        return CelError(located(self._text, at, message))

    @property
    def _token(self) -> tuple[str, str, int]:
        return self._tokens[self._next]

    def _is(self, text: str) -> bool:
        kind, found, _ = self._token
        return found == text and kind in ("op", "name")

    def _take(self, text: str) -> bool:
        if self._is(text):
            self._next += 1
            return True
        return False

    def _want(self, text: str) -> int:
        _, found, at = self._token
        if not self._take(text):
            raise self._error(at, f"Syntax error: mismatched input '{found}' expecting '{text}'")
        return at

    # -- grammar --------------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        root = self._expression()
        kind, found, at = self._token
        if kind != "end":
            word = "extraneous" if self._tokens[self._next + 1][0] == "end" else "mismatched"
            raise self._error(at, f"Syntax error: {word} input '{found}' expecting <EOF>")
        return root

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH * 4:
            raise self._error(self._token[2], "expression recursion limit exceeded: 250")
        root = self._logic("||", "_||_", self._and)
        at = self._token[2]
        if self._take("?"):
            yes = self._logic("||", "_||_", self._and)
            self._want(":")
            no = self._expression()
            root = Node("call", at, "_?_:_", [root, yes, no])
        self._depth -= 1
        return root

    def _and(self) -> Node:
        return self._logic("&&", "_&&_", self._relation)

    def _logic(self, sign: str, function: str, below: Any) -> Node:
        terms, places = [below()], []
        while self._is(sign):
            places.append(self._want(sign))
            terms.append(below())
        return _balanced(function, terms, places)

    def _relation(self) -> Node:
        left = self._chain(_SUMS, lambda: self._chain(_PRODUCTS, self._unary))
        while self._token[1] in _RELATIONS and self._token[0] in ("op", "name"):
            _, sign, at = self._token
            self._next += 1
            right = self._chain(_SUMS, lambda: self._chain(_PRODUCTS, self._unary))
            left = Node("call", at, _RELATIONS[sign], [left, right])
        return left

    def _chain(self, signs: dict[str, str], below: Any) -> Node:
        left: Node = below()
        while self._token[0] == "op" and self._token[1] in signs:
            _, sign, at = self._token
            self._next += 1
            left = Node("call", at, signs[sign], [left, below()])
        return left

    def _unary(self) -> Node:
        at = self._token[2]
        if self._take("!"):
            return Node("call", at, "!_", [self._unary()])
        if self._is("-"):
            self._next += 1
            kind, text, _ = self._token
            if kind == "num" and not text.lower().startswith("-"):
                return self._members(self._number("-" + text, at))
            return Node("call", at, "-_", [self._unary()])
        return self._members(self._primary())

    def _number(self, text: str, at: int) -> Node:
        self._next += 1
        low = text.lower()
        try:
            if low.endswith("u") and not low.startswith("-0x"):
                value: Any = UInt(int(low[:-1], 0 if "0x" in low else 10))
            elif "0x" in low:
                value = int(low, 16)
            elif re.fullmatch(r"-?\d+", low):
                value = int(low)
            else:
                value = float(low)
        except ValueError:
            raise self._error(at, "Syntax error: invalid number literal") from None
        if isinstance(value, UInt) and value >= 1 << 64:
            raise self._error(at, "Syntax error: invalid uint literal")
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise self._error(at, "Syntax error: invalid int literal")
        return Node("const", at, value)

    def _members(self, node: Node) -> Node:
        while True:
            at = self._token[2]
            if self._take("."):
                optional = self._take("?")
                kind, name, where = self._token
                if kind != "name" or name in ("true", "false", "null", "in"):
                    raise self._error(where, f"Syntax error: mismatched input '{name}' expecting IDENTIFIER")
                self._next += 1
                if optional:
                    node = Node("call", at, "_?._", [node, Node("const", where, name)])
                elif self._is("("):
                    node = self._call(name, node, at)
                else:
                    node = Node("select", at, name, target=node)
            elif self._is("{") and (name := dotted(node)):
                self._next += 1
                node = self._struct(at, name)
            elif self._take("["):
                function = "_[?_]" if self._take("?") else "_[_]"
                node = Node("call", at, function, [node, self._expression()])
                self._want("]")
            else:
                return node

    def _primary(self) -> Node:
        kind, text, at = self._token
        if kind == "num":
            return self._number(text, at)
        if kind == "str":
            self._next += 1
            return Node("const", at, self._string(text, at))
        if self._take("("):
            inner = self._expression()
            self._want(")")
            return inner
        if self._take("["):
            items, marked = self._entries("]")
            return Node("list", at, args=items, optional=marked)
        if self._take("{"):
            return self._map(at)
        absolute = self._take(".")
        kind, text, at = self._token
        if kind != "name" or text == "in":
            raise self._error(at, f"Syntax error: mismatched input '{text}' expecting {BEGINNINGS}")
        self._next += 1
        if text in ("true", "false", "null"):
            return Node("const", at, {"true": True, "false": False, "null": None}[text])
        if text in RESERVED:
            raise self._error(at, f"reserved identifier: {text}")
        if self._is("(") and not absolute:
            return self._call(text, None, at)
        return Node("ident", at, text)

    def _entries(self, end: str) -> tuple[list[Node], tuple[int, ...]]:
        items: list[Node] = []
        marked: list[int] = []
        while not self._take(end):
            if self._take("?"):
                marked.append(len(items))
            items.append(self._expression())
            if not self._take(","):
                self._want(end)
                break
        return items, tuple(marked)

    def _map(self, at: int) -> Node:
        args: list[Node] = []
        marked: list[int] = []
        while not self._take("}"):
            if self._take("?"):
                marked.append(len(args) // 2)
            args.append(self._expression())
            self._want(":")
            args.append(self._expression())
            if not self._take(","):
                self._want("}")
                break
        return Node("map", at, args=args, optional=tuple(marked))

    def _struct(self, at: int, name: str) -> Node:
        """Parse ``Name{field: value}``; ``parts`` holds the names of the fields and the positions of their colons."""
        made = Node("struct", at, name, parts={"names": [], "places": []})
        marked: list[int] = []
        while not self._take("}"):
            if self._take("?"):
                marked.append(len(made.args))
            kind, found, where = self._token
            if kind != "name":
                raise self._error(where, f"Syntax error: mismatched input '{found}' expecting IDENTIFIER")
            self._next += 1
            kind, after, where = self._token
            if kind in ("name", "num", "str"):
                raise self._error(where, f"Syntax error: missing ':' at '{after}'")
            made.parts["names"].append(found)
            made.parts["places"].append(self._want(":"))
            made.args.append(self._expression())
            if not self._take(","):
                self._want("}")
                break
        made.optional = tuple(marked)
        return made

    def _string(self, text: str, at: int) -> Any:
        prefix = re.match(r"[rRbB]*", text).group().lower()  # type: ignore[union-attr]
        body = text[len(prefix) :]
        body = body[3:-3] if body[:3] in ('"""', "'''") and len(body) >= 6 else body[1:-1]
        if "r" not in prefix:
            body = _ESCAPE.sub(lambda found: self._unescaped(found.group(1), at), body)
        if "b" not in prefix:
            return body
        return body.encode()

    def _unescaped(self, code: str, at: int) -> str:
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) == 3 and code.isdigit():
            return chr(int(code, 8))
        if code[0] in "xXuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        raise self._error(at, f"Syntax error: token recognition error at: '\\{code}'")

    # -- calls and macros -----------------------------------------------------------------------------------------

    def _call(self, name: str, target: Node | None, at: int) -> Node:
        where = self._want("(")
        args, _ = self._entries(")")
        if self._bindings and name == "bind" and dotted(target) == "cel" and len(args) == 3:
            return self._bound(where, *args)
        macro = self._macros.get((name, target is not None, len(args)))
        if macro is not None:
            made: Node = macro(self, where, target, args, name)
            return made
        return Node("call", where, name, args, target)

    def _bound(self, at: int, name: Node, value: Node, result: Node) -> Node:
        """Return a named value, as the initial accumulator of a loop over nothing."""
        nothing, never, same = Node("list", at), Node("const", at, False), Node("ident", at, self._variable(name))
        parts = {"range": nothing, "vars": [UNUSED], "init": value, "cond": never, "step": same, "result": result}
        return Node("comp", at, same.value, parts=parts)

    def _variable(self, node: Node) -> str:
        if node.kind != "ident":
            raise self._error(node.at, "argument must be a simple name")
        return str(node.value)

    def _has(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        operand = args[0]
        if operand.kind != "select" or operand.test:
            raise self._error(operand.at, "invalid argument to has() macro")
        return Node("select", at, operand.value, target=operand.target, test=True)

    def _quantify(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        *names, condition = args
        accu = Node("ident", at, ACCU)
        if name == "all":
            init, step = Node("const", at, True), Node("call", at, "_&&_", [accu, condition])
            cond, result = Node("call", at, "@not_strictly_false", [accu]), accu
        elif name == "exists":
            init, step = Node("const", at, False), Node("call", at, "_||_", [accu, condition])
            negated = Node("call", at, "!_", [Node("ident", at, ACCU)])
            cond, result = Node("call", at, "@not_strictly_false", [negated]), accu
        else:
            init, cond = Node("const", at, 0), Node("const", at, True)
            more = Node("call", at, "_+_", [accu, Node("const", at, 1)])
            step = Node("call", at, "_?_:_", [condition, more, Node("ident", at, ACCU)])
            result = Node("call", at, "_==_", [Node("ident", at, ACCU), Node("const", at, 1)])
        return self._fold(at, target, names, init, cond, step, result)

    def _fold(
        self, at: int, over: Node | None, names: list[Node], init: Node, cond: Node, step: Node, result: Node
    ) -> Node:
        variables = [self._variable(node) for node in names]
        parts = {"range": over, "vars": variables, "init": init, "cond": cond, "step": step, "result": result}
        return Node("comp", at, ACCU, parts=parts)

    def _gather(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        """Expand map, filter, transformList: the list grows by an entry if the filter holds."""
        count = 2 if name == "transformList" else 1
        names, rest = args[:count], args[count:]
        accu = Node("ident", at, ACCU)
        condition: Node | None = rest[0] if name == "filter" or len(rest) > 1 else None
        grown = Node("ident", at, self._variable(names[0])) if name == "filter" else rest[-1]
        step = Node("call", at, "_+_", [accu, Node("list", at, args=[grown])])
        if condition is not None:
            step = Node("call", at, "_?_:_", [condition, step, Node("ident", at, ACCU)])
        return self._fold(at, target, names, Node("list", at), Node("const", at, True), step, Node("ident", at, ACCU))

    def _transform_map(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        names, rest = args[:2], args[2:]
        condition = rest[0] if len(rest) > 1 else None
        if name == "transformMapEntry":
            step = Node("call", at, "cel.@mapInsert", [Node("ident", at, ACCU), rest[-1]])
        else:
            key = Node("ident", at, self._variable(names[0]))
            step = Node("call", at, "cel.@mapInsert", [Node("ident", at, ACCU), key, rest[-1]])
        if condition is not None:
            step = Node("call", at, "_?_:_", [condition, step, Node("ident", at, ACCU)])
        return self._fold(at, target, names, Node("map", at), Node("const", at, True), step, Node("ident", at, ACCU))

    def _repeat(self, target: Node | None, at: int) -> None:
        left = MAX_REPEATED - self._repeated
        self._repeated += sum(1 for _ in islice(walk(target), left + 1)) if target is not None else 0
        if self._repeated > MAX_REPEATED:
            raise self._error(at, f"expression exceeds {MAX_REPEATED} nodes that macros repeat")

    def _sort_by(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        """Expand ``sortBy``: sort by the result of the expression for each entry."""
        self._repeat(target, at)
        keys = self._gather(at, target, args, "map")
        return Node("call", at, "@sortByAssociatedKeys", [keys], target)

    def _opt_map(self, at: int, target: Node | None, args: list[Node], name: str) -> Node:
        """Expand ``x.optMap(v, e)``: e of the value if there is one."""
        assert target is not None
        self._repeat(target, at)
        unused = Node("list", at)
        value = Node("call", at, "value", [], target)
        bound = Node("comp", at, self._variable(args[0]))
        bound.parts = {
            "range": unused,
            "vars": ["#unused"],
            "init": value,
            "cond": Node("const", at, False),
            "step": Node("ident", at, self._variable(args[0])),
            "result": args[1],
        }
        yes = Node("call", at, "optional.of", [bound]) if name == "optMap" else bound
        return Node(
            "call", at, "_?_:_", [Node("call", at, "hasValue", [], target), yes, Node("call", at, "optional.none", [])]
        )


_STANDARD_MACROS: dict[tuple[str, bool, int], Any] = {
    ("has", False, 1): _Parser._has,
    **dict.fromkeys([(name, True, 2) for name in ("all", "exists", "exists_one")], _Parser._quantify),
    **dict.fromkeys([("map", True, 2), ("map", True, 3), ("filter", True, 2)], _Parser._gather),
    **dict.fromkeys([("optMap", True, 2), ("optFlatMap", True, 2)], _Parser._opt_map),
}
_MACROS = _STANDARD_MACROS | dict.fromkeys(
    [("existsOne", True, 2), *((name, True, 3) for name in ("all", "exists", "existsOne"))], _Parser._quantify
)
_MACROS["transformList", True, 3] = _MACROS["transformList", True, 4] = _Parser._gather
for _name in ("transformMap", "transformMapEntry"):
    _MACROS[_name, True, 3] = _MACROS[_name, True, 4] = _Parser._transform_map
_MACROS["sortBy", True, 2] = _Parser._sort_by

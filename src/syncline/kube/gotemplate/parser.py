"""Parses a template: :func:`parse_tree`. Its errors come at the same token and with the same text as Go's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from syncline.kube.gotemplate.cursor import Cursor, Stream
from syncline.kube.gotemplate.lexer import BRACES, Delimiters, Token, Type, tokens
from syncline.kube.gotemplate.nodes import Action, Branch, Break, Call, Continue, Node, Pipe, Range, Text, Tree
from syncline.kube.gotemplate.pipelines import Pipelines
from syncline.kube.gotemplate.strconv import quote

_STRINGS: Final = (Type.STRING, Type.RAW_STRING)


class _End:
    """What ends a list of nodes: ``end`` or ``else``."""

    def __init__(self, text: str) -> None:
        self.text = text


_END: Final = _End("{{end}}")
_ELSE: Final = _End("{{else}}")


def parse_tree(
    name: str,
    text: str,
    functions: Collection[str],
    *,
    most: int,
    nesting: int,
    delimiters: Delimiters = BRACES,
) -> Tree:
    """Parse ``text``. Raises :class:`TemplateError`, also for more than ``most`` tokens, and for more than ``nesting``
    structures and parentheses within one another."""
    names = frozenset(word for word in ("break", "continue") if word in functions)
    bodies: dict[str, tuple[Node, ...]] = {}
    _Parser(name, Cursor(name, Stream(tokens(text, names, delimiters), most), nesting), functions, bodies).whole()
    return Tree(name, text, bodies)


class _Parser:
    """Parses one body: that of the text, of a ``define`` or of a ``block``."""

    def __init__(
        self, name: str, cursor: Cursor, functions: Collection[str], bodies: dict[str, tuple[Node, ...]]
    ) -> None:
        self._name, self._cursor, self._functions, self._bodies = name, cursor, functions, bodies
        self._pipelines = Pipelines(cursor, functions)
        self._ranges = 0

    def whole(self) -> None:
        """Parse a text up to its end."""
        nodes: list[Node] = []
        while (token := self._cursor.peek()).type is not Type.EOF:
            if token.type is Type.LEFT:
                at = self._cursor.stream.at
                self._cursor.next()
                if self._cursor.next_non_space().type is Type.DEFINE:
                    self._within("definition")._definition()
                    continue
                self._cursor.stream.at = at
            node = self._text_or_action()
            if isinstance(node, _End):
                self._cursor.refuse(f"unexpected {node.text}")
            nodes.append(node)
        self._add(nodes)

    def _within(self, name: str) -> _Parser:
        cursor = self._cursor
        return _Parser(name, Cursor(cursor.shown, cursor.stream, cursor.nesting), self._functions, self._bodies)

    def _add(self, nodes: list[Node]) -> None:
        if _is_empty(self._bodies.get(self._name, ())):
            self._bodies[self._name] = tuple(nodes)
        elif not _is_empty(nodes):
            self._cursor.refuse(f"template: multiple definition of template {quote(self._name)}")

    def _definition(self) -> None:
        context = "define clause"
        self._name = self._cursor.unquoted(self._cursor.expect(context, *_STRINGS))
        self._cursor.expect(context, Type.RIGHT)
        nodes, end = self._list()
        if end is not _END:
            self._cursor.refuse(f"unexpected {end.text} in {context}")
        self._add(nodes)

    def _list(self) -> tuple[list[Node], _End]:
        nodes: list[Node] = []
        while True:
            if self._cursor.peek_non_space().type is Type.EOF:
                self._cursor.refuse("unexpected EOF")
            node = self._text_or_action()
            if isinstance(node, _End):
                return nodes, node
            nodes.append(node)

    def _text_or_action(self) -> Node | _End:
        token = self._cursor.next_non_space()
        if token.type is Type.TEXT:
            return Text(token.text)
        if token.type is not Type.LEFT:
            self._cursor.unexpected(token, "input")
        self._cursor.action_line = token.line
        try:
            return self._action()
        finally:
            self._cursor.action_line = 0

    def _action(self) -> Node | _End:
        token = self._cursor.next_non_space()
        control = _CONTROLS.get(token.type)
        if control is not None:
            return control(self, token)
        self._cursor.back()
        return Action(self._cursor.peek().at, self._pipelines.pipeline("command", Type.RIGHT))

    # Controls. The keyword is past.

    def _leave(self, token: Token) -> Node:
        word = token.text
        found = self._cursor.next_non_space()
        if found.type is not Type.RIGHT:
            self._cursor.unexpected(found, f"{{{{{word}}}}}")
        if not self._ranges:
            self._cursor.refuse(f"{{{{{word}}}}} outside {{{{range}}}}")
        return Break() if word == "break" else Continue()

    def _end(self, _: Token) -> _End:
        self._cursor.expect("end", Type.RIGHT)
        return _END

    def _else(self, _: Token) -> _End:
        if self._cursor.peek_non_space().type not in (Type.IF, Type.WITH):
            self._cursor.expect("else", Type.RIGHT)
        return _ELSE

    def _branch(self, token: Token) -> Node:
        self._cursor.deeper()
        variables = len(self._pipelines.variables)
        cases: list[tuple[Pipe, tuple[Node, ...]]] = []
        otherwise: list[Node] | None = None
        while True:
            pipe = self._pipelines.pipeline(token.text, Type.RIGHT)
            nodes, end = self._list()
            cases.append((pipe, tuple(nodes)))
            if end is _END:
                break
            if self._cursor.peek().type is token.type:
                self._cursor.next()
                continue
            otherwise = self._otherwise()
            break
        del self._pipelines.variables[variables:]
        self._cursor.nesting += 1
        return Branch(token.type is Type.WITH, tuple(cases), None if otherwise is None else tuple(otherwise))

    def _otherwise(self) -> list[Node]:
        nodes, end = self._list()
        if end is not _END:
            self._cursor.refuse(f"expected end; found {end.text}")
        return nodes

    def _range(self, _: Token) -> Node:
        self._cursor.deeper()
        variables = len(self._pipelines.variables)
        pipe = self._pipelines.pipeline("range", Type.RIGHT)
        self._ranges += 1
        nodes, end = self._list()
        self._ranges -= 1
        otherwise = None if end is _END else tuple(self._otherwise())
        del self._pipelines.variables[variables:]
        self._cursor.nesting += 1
        return Range(pipe.at, pipe, tuple(nodes), otherwise)

    def _template_name(self, context: str) -> tuple[Token, str]:
        token = self._cursor.expect(context, *_STRINGS)
        return token, self._cursor.unquoted(token)

    def _block(self, _: Token) -> Node:
        self._cursor.deeper()
        context = "block clause"
        token, name = self._template_name(context)
        pipe = self._pipelines.pipeline(context, Type.RIGHT)
        inner = self._within(name)
        nodes, end = inner._list()
        if end is not _END:
            self._cursor.refuse(f"unexpected {end.text} in {context}")
        inner._add(nodes)
        self._cursor.nesting += 1
        return Call(token.at, name, pipe)

    def _template(self, _: Token) -> Node:
        context = "template clause"
        token, name = self._template_name(context)
        pipe = None
        if self._cursor.next_non_space().type is not Type.RIGHT:
            self._cursor.back()
            pipe = self._pipelines.pipeline(context, Type.RIGHT)
        return Call(token.at, name, pipe)


_CONTROLS: Final[Mapping[Type, Callable[[_Parser, Token], Node | _End]]] = {
    Type.BLOCK: _Parser._block,
    Type.BREAK: _Parser._leave,
    Type.CONTINUE: _Parser._leave,
    Type.ELSE: _Parser._else,
    Type.END: _Parser._end,
    Type.IF: _Parser._branch,
    Type.RANGE: _Parser._range,
    Type.TEMPLATE: _Parser._template,
    Type.WITH: _Parser._branch,
}


def _is_empty(nodes: Collection[Node]) -> bool:
    """Whether nothing but white space is in a body."""
    return all(isinstance(node, Text) and not node.text.strip() for node in nodes)

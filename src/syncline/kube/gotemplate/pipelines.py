"""Parses pipelines: declarations, commands, operands and literals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from syncline.kube.gotemplate.cursor import Cursor
from syncline.kube.gotemplate.lexer import Token, Type
from syncline.kube.gotemplate.nodes import (
    Bool,
    Chain,
    Command,
    Dot,
    Field,
    Identifier,
    Nil,
    Number,
    Operand,
    Pipe,
    String,
    Variable,
)
from syncline.kube.gotemplate.strconv import parse_float, parse_integer, quote, unquote_char

_OPERANDS: Final = frozenset(
    (
        Type.BOOL,
        Type.RUNE,
        Type.COMPLEX,
        Type.DOT,
        Type.FIELD,
        Type.IDENTIFIER,
        Type.NUMBER,
        Type.NIL,
        Type.RAW_STRING,
        Type.STRING,
        Type.VARIABLE,
        Type.OPEN,
    )
)
_VALUES: Final = (Bool, Dot, Nil, Number, String)


class Pipelines:
    """Parses the pipelines of one body; it knows the variables that are declared."""

    def __init__(self, cursor: Cursor, functions: Collection[str]) -> None:
        self._cursor, self._functions = cursor, functions
        self.variables = ["$"]

    def pipeline(self, context: str, end: Type) -> Pipe:
        """Parse a pipeline and the token that ends it; ``context`` names it in errors."""
        at = self._cursor.peek_non_space().at
        variables, assigns = self._declarations(context)
        commands: list[Command] = []
        while (token := self._cursor.next_non_space()).type is not end:
            if token.type not in _OPERANDS:
                self._cursor.unexpected(token, context)
            self._cursor.back()
            commands.append(self._command())
        if not commands:
            self._cursor.refuse(f"missing value for {context}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.operands[0], _VALUES):
                self._cursor.refuse(f"non executable command in pipeline stage {stage}")
        return Pipe(at, tuple(variables), assigns, tuple(commands))

    def _declarations(self, context: str) -> tuple[list[Variable], bool]:
        variables: list[Variable] = []
        while (token := self._cursor.peek_non_space()).type is Type.VARIABLE:
            at = self._cursor.stream.at
            self._cursor.next()
            self._cursor.peek()
            sign = self._cursor.peek_non_space()
            if sign.type in (Type.ASSIGN, Type.DECLARE):
                self._cursor.next_non_space()
                variables.append(self._declared(token))
                return variables, sign.type is Type.ASSIGN
            if sign.text != "," or sign.type is not Type.CHAR:
                self._cursor.stream.at = at
                break
            self._cursor.next_non_space()
            variables.append(self._declared(token))
            if context != "range" or len(variables) > 1:
                self._cursor.refuse(f"too many declarations in {context}")
            if self._cursor.peek_non_space().type not in (Type.VARIABLE, Type.RIGHT, Type.CLOSE):
                self._cursor.refuse("range can only initialize variables")
        return variables, False

    def _declared(self, token: Token) -> Variable:
        self.variables.append(token.text)
        return Variable(token.at, token.text)

    def _command(self) -> Command:
        at = self._cursor.peek_non_space().at
        operands: list[Operand] = []
        while True:
            self._cursor.peek_non_space()
            operand = self._operand()
            if operand is not None:
                operands.append(operand)
            token = self._cursor.next()
            if token.type is Type.SPACE:
                continue
            if token.type in (Type.RIGHT, Type.CLOSE):
                self._cursor.back()
            elif token.type is not Type.PIPE:
                self._cursor.unexpected(token, "operand")
            break
        if not operands:
            self._cursor.refuse("empty command")
        return Command(at, tuple(operands))

    def _operand(self) -> Operand | None:
        node = self._term()
        if node is None or (first := self._cursor.peek()).type is not Type.FIELD:
            return node
        names: list[str] = []
        while self._cursor.peek().type is Type.FIELD:
            names.append(self._cursor.next().text[1:])
        if isinstance(node, Field):
            return Field(first.at, (*node.names, *names))
        if isinstance(node, Variable):
            return Variable(first.at, node.name, (*node.fields, *names))
        if isinstance(node, _VALUES):
            self._cursor.refuse(f"unexpected . after term {quote(str(node))}")
        return Chain(first.at, node, tuple(names))

    def _term(self) -> Operand | None:
        token = self._cursor.next_non_space()
        make = _TERMS.get(token.type)
        if make is None:
            self._cursor.back()
            return None
        return make(self, token)

    def _identifier(self, token: Token) -> Operand:
        if token.text not in self._functions:
            self._cursor.refuse(f"function {quote(token.text)} not defined")
        return Identifier(token.at, token.text)

    def _variable(self, token: Token) -> Operand:
        if token.text not in self.variables:
            self._cursor.refuse(f"undefined variable {quote(token.text)}")
        return Variable(token.at, token.text)

    def _string(self, token: Token) -> Operand:
        return String(token.at, token.text, self._cursor.unquoted(token))

    def _parenthesized(self, _: Token) -> Operand:
        self._cursor.deeper()
        pipe = self.pipeline("parenthesized pipeline", Type.CLOSE)
        self._cursor.nesting += 1
        return pipe

    def _rune(self, token: Token) -> Operand:
        step = unquote_char(token.text, 1, "'")
        if step is None:
            self._cursor.refuse("invalid syntax")
        made, end = step
        if token.text[end:] != "'":
            self._cursor.refuse(f"malformed character constant: {token.text}")
        code = ord(made.decode()) if token.text[1] != "\\" or token.text[2] in "uU" else made[0]
        return Number(token.at, token.text, code, code, float(code))

    def _complex(self, token: Token) -> Operand:
        self._cursor.refuse(f"complex numbers are not supported: {quote(token.text)}")

    def _number(self, token: Token) -> Operand:
        text = token.text
        if text.endswith("i") and parse_float(text[:-1]) is not None:
            self._complex(token)
        whole = parse_integer(text)
        integer, unsigned = _as_int64(whole), _as_uint64(whole)
        if text[0] in "+-" and whole:
            unsigned = None
        if integer is not None or unsigned is not None:
            return Number(token.at, text, integer, unsigned, float(whole or 0))
        real = parse_float(text)
        if real is None:
            self._cursor.refuse(f"illegal number syntax: {quote(text)}")
        if not any(char in ".eEpP" for char in text):
            self._cursor.refuse(f"integer overflow: {quote(text)}")
        exact = int(real) if real.is_integer() else None
        return Number(token.at, text, _as_int64(exact), _as_uint64(exact), real)


def _as_int64(number: int | None) -> int | None:
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def _as_uint64(number: int | None) -> int | None:
    return number if number is not None and 0 <= number < 1 << 64 else None


_TERMS: Final[Mapping[Type, Callable[[Pipelines, Token], Operand]]] = {
    Type.IDENTIFIER: Pipelines._identifier,
    Type.DOT: lambda _, token: Dot(token.at),
    Type.NIL: lambda _, token: Nil(token.at),
    Type.VARIABLE: Pipelines._variable,
    Type.FIELD: lambda _, token: Field(token.at, (token.text[1:],)),
    Type.BOOL: lambda _, token: Bool(token.at, token.text == "true"),
    Type.RUNE: Pipelines._rune,
    Type.COMPLEX: Pipelines._complex,
    Type.NUMBER: Pipelines._number,
    Type.OPEN: Pipelines._parenthesized,
    Type.STRING: Pipelines._string,
    Type.RAW_STRING: Pipelines._string,
}

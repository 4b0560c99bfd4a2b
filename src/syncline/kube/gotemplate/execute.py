"""Compiles the bodies of a template to closures, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from syncline.kube.gotemplate.evaluate import Evaluation
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.gotemplate.nodes import (
    Action,
    Branch,
    Break,
    Call,
    Chain,
    Command,
    Continue,
    Node,
    Operand,
    Pipe,
    Range,
    Text,
    Tree,
)
from syncline.kube.gotemplate.state import INTERFACE, State
from syncline.kube.gotemplate.strconv import quote
from syncline.kube.gotemplate.values import INVALID, StringMap, go_type


class _Leave(Enum):
    BREAK = auto()
    CONTINUE = auto()


Step: TypeAlias = Callable[[State, Any], "_Leave | None"]
"""Runs with a dot; returns what leaves a ``range``."""

_NOTHING: Final = ((), None)


class Program:
    """The compiled bodies of a tree: immutable."""

    __slots__ = ("_bodies", "_depth", "_evaluation", "_heights", "_main", "_tree")

    def __init__(self, tree: Tree, evaluation: Evaluation, depth: int) -> None:
        self._tree, self._evaluation, self._depth = tree, evaluation, depth
        self._heights = {name: 1 + _height(nodes) for name, nodes in tree.bodies.items()}
        self._bodies: Mapping[str, Step] = {name: self._list(nodes) for name, nodes in tree.bodies.items()}
        self._main = self._bodies[tree.name]

    def run(self, state: State, data: Any) -> None:
        """Run the main body."""
        self._main(state, data)

    def _list(self, nodes: Iterable[Node]) -> Step:
        steps = tuple(self._node(node) for node in nodes)
        weight = 1 + sum(_weight(node) for node in nodes)

        def run(s: State, dot: Any) -> _Leave | None:
            s.left -= weight
            if s.left < 0:
                s.take(0)
            for step in steps:
                leave = step(s, dot)
                if leave is not None:
                    return leave
            return None

        return run

    def _node(self, node: Node) -> Step:
        match node:
            case Text():
                return _text(node.text)
            case Action():
                return self._action(node)
            case Branch():
                return self._branch(node)
            case Range():
                return self._range(node)
            case Call():
                return self._call(node)
            case Break():
                return lambda s, dot: _Leave.BREAK
            case Continue():
                return lambda s, dot: _Leave.CONTINUE

    def _action(self, node: Action) -> Step:
        run = self._evaluation.pipe(node.pipe)
        if node.pipe.variables:

            def silent(s: State, dot: Any) -> None:
                run(s, dot)

            return silent

        def printed(s: State, dot: Any) -> None:
            value = run(s, dot)
            if type(value) is not str:
                s.node = node
                value = _shown(s, value)
            s.room -= len(value)
            if s.room < 0:
                s.put("")
            s.out.append(value)

        return printed

    def _branch(self, node: Branch) -> Step:
        cases = tuple((self._evaluation.pipe(pipe), self._list(body)) for pipe, body in node.cases)
        otherwise = None if node.otherwise is None else self._list(node.otherwise)
        sets_dot = node.sets_dot

        def run(s: State, dot: Any) -> _Leave | None:
            mark, leave = len(s.declared), None
            for pipe, body in cases:
                value = pipe(s, dot)
                if value:
                    if sets_dot:
                        outer, s.dot_type = s.dot_type, None
                        leave = body(s, value)
                        s.dot_type = outer
                    else:
                        leave = body(s, dot)
                    break
            else:
                if otherwise is not None:
                    leave = otherwise(s, dot)
            s.forget(mark)
            return leave

        return run

    def _range(self, node: Range) -> Step:
        pipe, body = self._evaluation.pipe(node.pipe), self._list(node.body)
        otherwise = None if node.otherwise is None else self._list(node.otherwise)
        bind = _binding(node.pipe)
        pair = len(node.pipe.variables) > 1

        def run(s: State, dot: Any) -> _Leave | None:
            s.node = node
            mark, leave = len(s.declared), None
            value = pipe(s, dot)
            inner = len(s.declared)
            items, static = _items(s, value, pair)
            outer, empty = s.dot_type, True
            for index, one in items:
                empty = False
                if bind is not None:
                    bind(s, index, one, static)
                s.dot_type = static
                left = body(s, one)
                s.dot_type = outer
                s.forget(inner)
                if left is _Leave.BREAK:
                    break
            if empty and otherwise is not None:
                leave = otherwise(s, dot)
            s.forget(mark)
            return leave

        return run

    def _call(self, node: Call) -> Step:
        pipe = None if node.pipe is None else self._evaluation.pipe(node.pipe)
        name, most = node.name, self._depth
        height = self._heights.get(name)

        def run(s: State, dot: Any) -> None:
            s.node = node
            if height is None:
                s.fail(f"template {quote(name)} not defined")
            if s.depth + height > most:
                s.fail(f"exceeded maximum template depth ({most})")
            value = INVALID if pipe is None else pipe(s, dot)
            outer = s.name, s.variables, s.types, s.declared, s.dot_type
            s.name, s.variables, s.types, s.declared, s.dot_type = name, {"$": [value]}, {"$": [None]}, ["$"], None
            s.depth += height
            self._bodies[name](s, value)
            s.depth -= height
            s.name, s.variables, s.types, s.declared, s.dot_type = outer

        return run


def _text(text: str) -> Step:
    size = len(text)

    def run(s: State, _: Any) -> None:
        s.room -= size
        if s.room < 0:
            s.put("")
        s.out.append(text)

    return run


def _shown(s: State, value: Any) -> str:
    """The text of a value that is printed."""
    if value is INVALID:
        return "<no value>"
    if type(value) is int:
        return str(value)
    try:
        return sprint(value)
    except FunctionError as error:
        return s.fail(str(error))


def _items(s: State, value: Any, pair: bool) -> tuple[Iterable[tuple[Any, Any]], str | None]:
    """What a ``range`` goes through: indexes or keys with elements, and the static type of the latter."""
    if isinstance(value, list):
        return enumerate(value), INTERFACE if go_type(value) == "[]interface {}" else None
    if isinstance(value, dict):
        s.take(len(value))  # they are sorted, however few of them the body sees
        return sorted(value.items(), key=_key), None if isinstance(value, StringMap) else INTERFACE
    if value is INVALID:
        return _NOTHING
    if isinstance(value, int) and not isinstance(value, bool):
        if pair:
            s.fail(f"can't use {value} to iterate over more than one variable")
        kind = type(value)
        return ((INVALID, kind(number)) for number in range(value)), None
    try:
        text = sprint(value)
    except FunctionError as error:
        text = str(error)
    return s.fail(f"range can't iterate over {text}")


def _key(item: tuple[Any, Any]) -> str:
    return str(item[0])


def _binding(pipe: Pipe) -> Callable[[State, Any, Any, str | None], None] | None:
    """What gives the variables of a ``range`` their values."""
    names = [variable.name for variable in pipe.variables]
    if not names:
        return None
    last = names[-1]
    if pipe.assigns:
        if len(names) == 1:
            return lambda s, index, one, static: s.assign(last, one, static)

        def assigned(s: State, index: Any, one: Any, static: str | None) -> None:
            s.assign(names[0], index)
            s.assign(last, one, static)

        return assigned
    if len(names) == 1:
        return lambda s, index, one, static: s.assign(last, one, static)
    first, place = names[0], -2 if names[0] == last else -1

    def declared(s: State, index: Any, one: Any, static: str | None) -> None:
        s.assign(last, one, static)
        s.variables[first][place] = index
        s.types[first][place] = None

    return declared


def _height(nodes: Iterable[Node]) -> int:
    """How many structures are within one another."""
    most = 0
    for node in nodes:
        match node:
            case Branch():
                inner = 1 + max(_height(body) for body in (*(body for _, body in node.cases), node.otherwise or ()))
            case Range():
                inner = 1 + max(_height(node.body), _height(node.otherwise or ()))
            case _:
                inner = 0
        most = max(most, inner)
    return most


def _weight(node: Node | Operand | Command) -> int:
    """The steps of a node without what is in the lists and templates that it runs."""
    match node:
        case Action():
            return 1 + _weight(node.pipe)
        case Branch():
            return 1 + sum(_weight(pipe) for pipe, _ in node.cases)
        case Range():
            return 1 + _weight(node.pipe)
        case Call():
            return 1 + (0 if node.pipe is None else _weight(node.pipe))
        case Pipe():
            return 1 + sum(_weight(command) for command in node.commands)
        case Command():
            return sum(_weight(operand) for operand in node.operands)
        case Chain():
            return len(node.fields) + _weight(node.base)
    return 1 + len(getattr(node, "names", ())) + len(getattr(node, "fields", ()))

"""Compiles an expression: parse, check, estimate, turn into functions. :func:`compile_program`.

Used for validation rules and policies. The result is a :class:`Program`, which can be evaluated any number of times
within a limit of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from syncline.kube.cel.checker import Messages, check
from syncline.kube.cel.declarations import Language
from syncline.kube.cel.functions import FUNCTIONS
from syncline.kube.cel.metering import MAX_STEPS, Exceeded, Meter, charge_made, charge_of
from syncline.kube.cel.nodes import CelError, Node
from syncline.kube.cel.parser import ACCU, parse
from syncline.kube.cel.types import Type
from syncline.kube.cel.values import (
    EvaluationError,
    GrowingList,
    GrowingMap,
    Optional,
    TypeValue,
    no_overload,
    type_name,
)
from syncline.kube.transport.elsewhere import BOUND, TooLong

__all__ = ["MAX_STEPS", "CostExceeded", "Made", "Program", "compile_program", "result_type"]

TOO_DEEP = "ERROR: <input>:-1:0: max recursion depth exceeded"
Scope = dict[str, Any]
Step = Callable[[Scope], Any]


class Made(dict[str, Any]):
    """An object created by an expression: its fields, and the name of its type (``Object.spec``)."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class CostExceeded(EvaluationError):
    """An evaluation beyond its limit of steps; with equal values it always fails so."""

    def __init__(self, limit: int) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
        self.limit = limit


class Program:
    """A compiled expression; ``type`` is the type of its result."""

    __slots__ = ("_step", "names", "root", "text", "type")

    def __init__(self, text: str, root: Node, kind: Type) -> None:
        self.text, self.root, self.type = text, root, kind
        self.names = frozenset(_names(root))
        self._step = _step(root)

    def evaluate(
        self, variables: Mapping[str, Any], spent: Callable[[int], None] | None = None, *, limit: int = MAX_STEPS
    ) -> Any:
        """Return the value; raises :class:`EvaluationError`, :class:`CostExceeded` beyond ``limit`` steps, and
        ``TooLong`` beyond the steps left on the loop. ``spent`` is called with the number of steps."""
        most = max(min(limit, MAX_STEPS), 0)
        here = BOUND.get()
        outer = here.meter if here is not None else None
        meter = Meter(most if here is None else min(most, here.meter.left))
        given = meter.left
        if here is not None:
            here.meter = meter
        try:
            return self._step({**variables, "#": meter})
        except RecursionError:
            raise CostExceeded(most) from None
        except Exceeded:
            if here is not None:
                raise TooLong from None
            raise CostExceeded(most) from None
        finally:
            took = given - max(meter.left, 0)
            if here is not None and outer is not None:
                here.meter = outer
                outer.left -= took
            if spent is not None:
                spent(took)

    def __reduce__(self) -> tuple[type[Program], tuple[str, Node, Type]]:
        """Pickle the source: functions cannot be sent to another process."""
        return Program, (self.text, self.root, self.type)


def compile_program(
    text: str, variables: Mapping[str, Type], messages: Messages | None = None, language: Language | None = None
) -> Program:
    """Compile ``text``; raises :class:`CelError` with every error. ``messages``: types of created objects;
    ``language``: functions other than Kubernetes'; a variable ``@NAME`` of an evaluation is what one of them does."""
    try:
        root = parse(text, extended=language is None or language.macros)
        return Program(text, root, check(text, root, variables, messages, language))
    except RecursionError:
        raise CelError(TOO_DEEP) from None


def result_type(
    text: str, variables: Mapping[str, Type], messages: Messages | None = None, *, bindings: bool = False
) -> Type:
    """Return the type of ``text`` without compiling a program; raises like :func:`compile_program`. ``messages``: types
    of created objects; ``bindings``: ``cel.bind`` is allowed."""
    try:
        return check(text, parse(text, bindings=bindings), variables, messages)
    except RecursionError:
        raise CelError(TOO_DEEP) from None


def _names(node: Node) -> list[str]:
    found = [str(node.value)] if node.kind == "ident" else []
    below = [*node.args, *([node.target] if node.target else [])]
    below += [part for part in node.parts.values() if isinstance(part, Node)]
    for one in below:
        found += _names(one)
    return found


def _step(node: Node) -> Step:
    made: Step = _MAKERS[node.kind](node)
    return made


def _const(node: Node) -> Step:
    value = node.value
    return lambda scope: value


def _ident(node: Node) -> Step:
    name = node.value
    if node.type is not None and node.type[0] == "type":
        named = TypeValue(str(name))
        return lambda scope: scope.get(name, named)

    def read(scope: Scope) -> Any:
        try:
            value = scope[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None
        if isinstance(value, EvaluationError):
            raise value
        return value

    return read


def _select(node: Node) -> Step:
    assert node.target is not None
    operand, name, test = _step(node.target), node.value, node.test

    def select(scope: Scope) -> Any:
        value = operand(scope)
        scope["#"].spend()
        if isinstance(value, Optional):
            if test:
                return bool(value.has and isinstance(value.value, dict) and name in value.value)
            inside = value.value if value.has else None
            return Optional(inside[name], True) if isinstance(inside, dict) and name in inside else Optional()
        if not isinstance(value, dict):
            raise no_overload()
        if test:
            return name in value
        try:
            return value[name]
        except KeyError:
            raise EvaluationError(f"no such key: {name}") from None

    return select


def _list(node: Node) -> Step:
    items, optional = [_step(arg) for arg in node.args], frozenset(node.optional)

    def make(scope: Scope) -> list[Any]:
        scope["#"].spend(1 + len(items))
        if not optional:
            return [item(scope) for item in items]
        result = []
        for index, item in enumerate(items):
            value = item(scope)
            if index not in optional:
                result.append(value)
            elif value.has:
                result.append(value.value)
        return result

    return make


def _map(node: Node) -> Step:
    steps, optional = [_step(arg) for arg in node.args], frozenset(node.optional)
    pairs = list(zip(steps[::2], steps[1::2], strict=True))

    def make(scope: Scope) -> dict[Any, Any]:
        scope["#"].spend(1 + len(steps))
        result: dict[Any, Any] = {}
        for index, (key, value) in enumerate(pairs):
            name, found = key(scope), value(scope)
            if index in optional:
                if not found.has:
                    continue
                found = found.value
            if not isinstance(name, str | int):
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            if name in result:
                raise EvaluationError(f"Failed with repeated key: {name}")
            result[name] = found
        return result

    return make


def _struct(node: Node) -> Step:
    steps = [(str(name), _step(arg)) for name, arg in zip(node.parts["names"], node.args, strict=True)]
    optional, kind = frozenset(node.optional), str(node.value)

    def make(scope: Scope) -> Made:
        scope["#"].spend(1 + len(steps))
        made = Made(kind)
        for index, (name, step) in enumerate(steps):
            value = step(scope)
            if index in optional:
                if not value.has:
                    continue
                value = value.value
            made[name] = value
        return made

    return make


def _unanswered(*values: Any) -> Any:
    raise no_overload()


def _call(node: Node) -> Step:
    special = _SPECIAL.get(node.value)
    if special is not None:
        made: Step = special(node)
        return made
    # Checks of the authorizer compile everywhere, but only admission has an authorizer.
    known: Callable[..., Any] = FUNCTIONS.get(node.value, _unanswered)
    given = f"@{node.value}"
    steps = [_step(arg) for arg in ([node.target] if node.target is not None else []) + node.args]
    name = str(node.value)
    charge = charge_of(name)

    def call(scope: Scope) -> Any:
        values = [step(scope) for step in steps]
        meter = scope["#"]
        charge(values, meter)
        work = scope.get(given, known)
        try:
            made = work(*values)
        except (TypeError, AttributeError):
            raise no_overload() from None
        except (ValueError, ArithmeticError, LookupError, OSError) as error:
            raise EvaluationError(f"{name}: {type(error).__name__}") from None
        charge_made(made, meter)
        return made

    return call


def _truth(step: Step, scope: Scope) -> bool | EvaluationError:
    """Return True, False, or the error."""
    try:
        value = step(scope)
    except EvaluationError as error:
        return error
    return value if isinstance(value, bool) else no_overload()


def _logic(stops: bool) -> Callable[[Node], Step]:
    """Return a logical operator that ``stops`` at True or False; a side that decides hides an error of the other."""

    def make(node: Node) -> Step:
        left, right = (_step(arg) for arg in node.args)

        def decide(scope: Scope) -> bool:
            scope["#"].spend()
            one = _truth(left, scope)
            if one is stops:
                return stops
            other = _truth(right, scope)
            if other is stops:
                return stops
            for found in (one, other):
                if isinstance(found, EvaluationError):
                    raise found
            return not stops

        return decide

    return make


def _conditional(node: Node) -> Step:
    condition, yes, no = (_step(arg) for arg in node.args)

    def choose(scope: Scope) -> Any:
        value = condition(scope)
        scope["#"].spend()
        if not isinstance(value, bool):
            raise no_overload()
        return yes(scope) if value else no(scope)

    return choose


def _negation(node: Node) -> Step:
    operand = _step(node.args[0])

    def negate(scope: Scope) -> bool:
        value = operand(scope)
        scope["#"].spend()
        if not isinstance(value, bool):
            raise no_overload()
        return not value

    return negate


def _not_false(node: Node) -> Step:
    operand = _step(node.args[0])
    return lambda scope: _truth(operand, scope) is not False


def _optional_select(node: Node) -> Step:
    operand, name = _step(node.args[0]), node.args[1].value

    def select(scope: Scope) -> Optional:
        value = operand(scope)
        scope["#"].spend()
        if isinstance(value, Optional):
            value = value.value if value.has else None
        return Optional(value[name], True) if isinstance(value, dict) and name in value else Optional()

    return select


def _comp(node: Node) -> Step:
    parts = node.parts
    over, names, accu = _step(parts["range"]), parts["vars"], node.value
    init, cond, step, result = (_step(parts[key]) for key in ("init", "cond", "step", "result"))
    ready = parts["cond"].kind == "const"
    never = ready and parts["cond"].value is False
    gathers = accu == ACCU and parts["init"].kind in ("list", "map")

    def fold(scope: Scope) -> Any:
        inside = over(scope)
        meter = scope["#"]
        meter.spend(1 + len(scope) // SCOPE_PER_STEP)
        inner = {**scope, accu: _growing(init(scope)) if gathers else init(scope)}
        if not never:
            for values in _entries(inside, len(names)):
                meter.spend(ROUND_STEPS)
                inner.update(zip(names, values, strict=True))
                if not ready and not cond(inner):
                    break
                try:
                    inner[accu] = step(inner)
                except EvaluationError as error:
                    if ready:
                        raise
                    inner[accu] = error
        made = result(inner)
        return made.finished() if isinstance(made, GrowingList | GrowingMap) else made

    return fold


SCOPE_PER_STEP = 20
"""Names in scope that a loop copies per step."""
ROUND_STEPS = 2


def _growing(value: Any) -> Any:
    if type(value) is list:
        return GrowingList(value)
    return GrowingMap(value) if type(value) is dict else value


def _entries(inside: Any, count: int) -> Iterable[tuple[Any, ...]]:
    if isinstance(inside, dict):
        return ((key,) for key in inside) if count == 1 else inside.items()
    if isinstance(inside, list):
        return ((item,) for item in inside) if count == 1 else enumerate(inside)
    raise no_overload()


_MAKERS: dict[str, Callable[[Node], Step]] = {
    "const": _const,
    "ident": _ident,
    "select": _select,
    "list": _list,
    "map": _map,
    "call": _call,
    "comp": _comp,
    "struct": _struct,
}
_SPECIAL: dict[str, Callable[[Node], Step]] = {
    "_&&_": _logic(False),
    "_||_": _logic(True),
    "_?_:_": _conditional,
    "!_": _negation,
    "@not_strictly_false": _not_false,
    "_?._": _optional_select,
}

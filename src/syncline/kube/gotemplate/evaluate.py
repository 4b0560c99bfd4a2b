"""Compiles pipelines to closures: fields, variables, constants and calls, with the checks and errors of Go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.functions import Function, FunctionError, Interrupted, Kind
from syncline.kube.gotemplate.nodes import (
    Bool,
    Chain,
    Command,
    Dot,
    Field,
    Identifier,
    Located,
    Nil,
    Number,
    Operand,
    Pipe,
    String,
    Variable,
)
from syncline.kube.gotemplate.state import INTERFACE, State
from syncline.kube.gotemplate.strconv import quote
from syncline.kube.gotemplate.values import (
    INVALID,
    Int64,
    NilDict,
    NilList,
    NilStrings,
    Opaque,
    StringMap,
    Uint32,
    go_type,
)

Run: TypeAlias = Callable[[State, Any], Any]
"""Evaluates with a dot."""
Stage: TypeAlias = Callable[[State, Any, Any], Any]
"""Evaluates with a dot and the value of the stage before."""
Check: TypeAlias = Callable[[State, Any], Any]
"""Converts a value to a parameter, or fails."""

_MISSING: Final = object()
_NILS: Final[Mapping[Kind, Callable[[], Any]]] = {
    Kind.ANY: lambda: None,
    Kind.VALUE: lambda: INVALID,
    Kind.LIST: NilList,
    Kind.DICT: NilDict,
    Kind.STRINGS: NilStrings,
    Kind.INTS: NilList,
    Kind.BYTES: NilList,
    Kind.STRING_MAP: StringMap,
}
_Evaluated = Field | Variable | Pipe | Identifier | Chain


class Evaluation:
    """Compiles with the functions of a template. ``on_missing`` gives the value of a key that a map does not have."""

    def __init__(self, functions: Mapping[str, Function], builtins: Mapping[str, Function], missing: str) -> None:
        self._functions, self._builtins = functions, builtins
        self._zero, self._strict = missing == "zero", missing == "error"

    def pipe(self, pipe: Pipe) -> Run:
        """Compile a pipeline; its value is never None: nil is INVALID."""
        first = self._first(pipe.commands[0])
        stages = tuple(self._stage(command) for command in pipe.commands[1:])
        names, assigns = tuple(variable.name for variable in pipe.variables), pipe.assigns
        if not stages and not names:

            def plain(s: State, dot: Any) -> Any:
                s.node = pipe
                value = first(s, dot)
                return INVALID if value is None else value

            return plain

        def run(s: State, dot: Any) -> Any:
            s.node = pipe
            value = first(s, dot)
            if value is None:
                value = INVALID
            for stage in stages:
                value = stage(s, dot, value)
                if value is None:
                    value = INVALID
            for name in names:
                if assigns:
                    s.assign(name, value)
                else:
                    s.declare(name, value)
            return value

        return run

    # Commands.

    def _first(self, command: Command) -> Run:
        operands = command.operands
        if len(operands) == 1 and not isinstance(operands[0], Identifier):
            return self._operand(operands[0])
        stage = self._called(command, piped=False)
        return lambda s, dot: stage(s, dot, _MISSING)

    def _stage(self, command: Command) -> Stage:
        return self._called(command, piped=True)

    def _called(self, command: Command, *, piped: bool) -> Stage:
        """A command with arguments, or with the value of the stage before."""
        first, rest = command.operands[0], command.operands[1:]
        if isinstance(first, Identifier):
            return self._function(first, command, rest, piped=piped)
        if isinstance(first, Field):
            return self._method(first, lambda s, dot: (dot, s.dot_type), first.names, rest, piped)
        if isinstance(first, Variable):
            variable = self._variable(first)
            if first.fields:
                name = first.name
                return self._method(
                    first, lambda s, dot: (variable(s, dot), s.types[name][-1]), first.fields, rest, piped
                )
            return _refused(f"can't give argument to non-function {first}", variable)
        if isinstance(first, Chain):
            return self._method(first, self._base(first), first.fields, rest, piped)
        return _refused(
            f"can't give argument to non-function {first}", None, None if isinstance(first, Pipe) else first
        )

    def _operand(self, node: Operand) -> Run:
        """An operand alone."""
        match node:
            case Field():
                return self._field(node)
            case Variable():
                return self._variable_field(node)
            case Chain():
                walk, base = self._walk(node.fields), self._base(node)

                def chain(s: State, dot: Any) -> Any:
                    s.node = node
                    return walk(s, *base(s, dot))

                return chain
            case Pipe():
                return self.pipe(node)
            case Nil():
                return _failing(node, "nil is not a command")
            case Dot():

                def dotted(s: State, dot: Any) -> Any:
                    s.node = node
                    return dot

                return dotted
            case Identifier():
                stage = self._function(node, node, (), piped=False)
                return lambda s, dot: stage(s, dot, _MISSING)
        return _constant(node)

    def _field(self, node: Field) -> Run:
        walk = self._walk(node.names)

        def run(s: State, dot: Any) -> Any:
            s.node = node
            return walk(s, dot, s.dot_type)

        return run

    def _variable(self, node: Variable) -> Run:
        name = node.name

        def run(s: State, _: Any) -> Any:
            s.node = node
            values = s.variables.get(name)
            return values[-1] if values else s.fail(f"undefined variable: {name}")

        return run

    def _variable_field(self, node: Variable) -> Run:
        variable = self._variable(node)
        if not node.fields:
            return variable
        walk, name = self._walk(node.fields), node.name
        return lambda s, dot: walk(s, variable(s, dot), s.types[name][-1])

    def _base(self, chain: Chain) -> Callable[[State, Any], tuple[Any, str | None]]:
        """The value before the fields of a chain, and its static type."""
        node = chain.base
        if isinstance(node, Nil):
            return _failing(chain, f"indirection through explicit nil in {chain}")
        run = self._operand(node)
        function = self._found(node.name)[0] if isinstance(node, Identifier) else None
        static = INTERFACE if function is not None and function.result in (Kind.ANY,) else None

        def base(s: State, dot: Any) -> tuple[Any, str | None]:
            s.node = chain
            return run(s, dot), static

        return base

    # Fields.

    def _walk(self, names: tuple[str, ...]) -> Callable[[State, Any, str | None], Any]:
        member = self._member

        def walk(s: State, value: Any, static: str | None) -> Any:
            for name in names:
                if type(value) is dict:
                    found = value.get(name, _MISSING)
                    if found is not _MISSING:
                        value, static = found, INTERFACE
                        continue
                value, static = member(s, value, name, static)
            return value

        return walk

    def _member(self, s: State, value: Any, name: str, static: str | None) -> tuple[Any, str | None]:
        """A field of any value, with its static type."""
        if value is INVALID:
            return (s.fail(f"nil data; no entry for key {quote(name)}") if self._strict else INVALID), None
        if value is None:
            s.fail(f"nil pointer evaluating {static or INTERFACE}.{name}")
        if isinstance(value, dict):
            typed = isinstance(value, StringMap)
            if name in value:
                return value[name], None if typed else INTERFACE
            if self._strict:
                s.fail(f"map has no entry for key {quote(name)}")
            if self._zero:
                return ("", None) if typed else (None, INTERFACE)
            return INVALID, None
        if isinstance(value, Opaque):
            function = value.methods().get(name)
            if function is not None:
                return self._dynamic(function, name, ())(s, None, _MISSING), None
            fields = value.fields()
            if name in fields:
                return fields[name], None
        return s.fail(f"can't evaluate field {name} in type {static or go_type(value)}")

    def _method(
        self,
        node: Field | Variable | Chain,
        base: Callable[[State, Any], tuple[Any, str | None]],
        names: tuple[str, ...],
        args: tuple[Operand, ...],
        piped: bool,
    ) -> Stage:
        """A field that gets arguments: only a method may."""
        walk, last = self._walk_typed(names[:-1]), names[-1]

        def run(s: State, dot: Any, final: Any) -> Any:
            s.node = node
            value, static = walk(s, *base(s, dot))
            function = value.methods().get(last) if isinstance(value, Opaque) else None
            if function is not None:
                return self._dynamic(function, last, args, node, piped)(s, dot, final)
            if isinstance(value, dict):
                s.fail(f"{last} is not a method but has arguments")
            if isinstance(value, Opaque) and last in value.fields():
                s.fail(f"{last} has arguments but cannot be invoked as function")
            return self._member(s, value, last, static)[0]

        return run

    def _walk_typed(self, names: tuple[str, ...]) -> Callable[[State, Any, str | None], tuple[Any, str | None]]:
        def walk(s: State, value: Any, static: str | None) -> tuple[Any, str | None]:
            for name in names:
                value, static = self._member(s, value, name, static)
            return value, static

        return walk

    # Calls.

    def _found(self, name: str) -> tuple[Function, bool]:
        """A function, and whether it is a builtin one."""
        own = self._functions.get(name)
        return (own, False) if own is not None else (self._builtins[name], True)

    def _function(self, node: Identifier, whole: Located, args: tuple[Operand, ...], *, piped: bool) -> Stage:
        function, builtin = self._found(node.name)
        if builtin and node.name in ("and", "or") and len(args) + piped:
            return self._logical(node, args, piped)
        call = self._call(function, node.name, args, whole, piped)
        if builtin and node.name == "call":
            call = self._call(_callee(function, args), node.name, args, whole, piped)

        def run(s: State, dot: Any, final: Any) -> Any:
            s.node = node
            return call(s, dot, final)

        return run

    def _dynamic(
        self,
        function: Function,
        name: str,
        args: tuple[Operand, ...],
        node: Located | None = None,
        piped: bool = False,
    ) -> Stage:
        return self._call(function, name, args, node, piped)

    def _logical(self, node: Identifier, args: tuple[Operand, ...], piped: bool) -> Stage:
        """``and`` and ``or`` evaluate no more arguments than they need."""
        getters, stop = tuple(self._argument(Kind.VALUE, arg) for arg in args), node.name == "or"

        def run(s: State, dot: Any, final: Any) -> Any:
            s.node = node
            value: Any = INVALID
            for get in getters:
                value = get(s, dot)
                if bool(value) is stop:
                    return value
            return final if piped else value

        return run

    def _call(
        self, function: Function, name: str, args: tuple[Operand, ...], whole: Located | None, piped: bool
    ) -> Stage:
        count, params = len(args) + piped, function.params
        fixed = len(params) - 1 if function.variadic else len(params)
        if function.variadic and count < fixed:
            return _refused(f"wrong number of args for {name}: want at least {fixed} got {len(args)}", None)
        if not function.variadic and count != fixed:
            return _refused(f"wrong number of args for {name}: want {fixed} got {count}", None)
        kinds = [params[at] if at < fixed else params[-1] for at in range(count)]
        getters = tuple(self._argument(kind, arg) for kind, arg in zip(kinds, args))
        check = _check(kinds[-1]) if piped else None
        call = function.call

        def run(s: State, dot: Any, final: Any) -> Any:
            values = [get(s, dot) for get in getters]
            if check is not None:
                values.append(check(s, final))
            s.take_for(values)
            try:
                result = call(*values)
            except (RecursionError, TemplateError, Interrupted):
                raise
            except Exception as error:  # as Go, which makes an error of a panic
                s.node = whole or s.node
                s.fail(f"error calling {name}: {error if isinstance(error, FunctionError) else repr(error)}")
            s.take_for((result,))
            return result

        return run

    def _argument(self, kind: Kind, node: Operand) -> Run:
        if isinstance(node, Nil):
            nil = _NILS.get(kind)
            if nil is None:
                return _failing(node, f"cannot assign nil to {kind.value}")
            return _made(node, nil)
        if not isinstance(node, _Evaluated | Dot):
            return _literal(kind, node)
        run = self._operand(node)
        if kind is Kind.VALUE:
            return run
        if kind is Kind.ANY:

            def anything(s: State, dot: Any) -> Any:
                value = run(s, dot)
                return None if value is INVALID else value

            return anything
        check = _check(kind)
        return lambda s, dot: check(s, run(s, dot))


def _callee(function: Function, args: Sequence[Operand]) -> Function:
    """``call`` with the text of its first argument, which its errors name."""
    name = str(args[0]) if args else None
    return Function(lambda *values: function.call(name, *values), function.params, function.variadic)


def _failing(node: Located, message: str) -> Run:
    def run(s: State, _: Any) -> Any:
        s.node = node
        s.fail(message)

    return run


def _refused(message: str, before: Run | None, node: Located | None = None) -> Stage:
    def run(s: State, dot: Any, _: Any) -> Any:
        if before is not None:
            before(s, dot)
        if node is not None:
            s.node = node
        s.fail(message)

    return run


def _value(node: Operand, value: Any) -> Run:
    def run(s: State, _: Any) -> Any:
        s.node = node
        return value

    return run


def _made(node: Operand, make: Callable[[], Any]) -> Run:
    def run(s: State, _: Any) -> Any:
        s.node = node
        return make()

    return run


def _constant(node: Operand) -> Run:
    """A literal whose type its form decides."""
    if isinstance(node, Bool | String):
        return _value(node, node.value)
    if not isinstance(node, Number):
        return _failing(node, f"can't evaluate command {quote(str(node))}")
    text = node.text
    hexadecimal = text[:2] in ("0x", "0X") and len(text) > 2 and not any(char in "pP" for char in text)
    if node.real is not None and text[0] != "'" and not hexadecimal and any(char in ".eEpP" for char in text):
        return _value(node, node.real)
    if node.integer is not None:
        return _value(node, node.integer)
    return _failing(node, f"{text} overflows int")


def _literal(kind: Kind, node: Operand) -> Run:
    """A literal for a parameter."""
    if kind in (Kind.ANY, Kind.VALUE):
        return _constant(node)
    number = node if isinstance(node, Number) else None
    value: Any = None
    match kind:
        case Kind.BOOL:
            name, value = "bool", node.value if isinstance(node, Bool) else None
        case Kind.STRING:
            name, value = "string", node.value if isinstance(node, String) else None
        case Kind.INT:
            name, value = "integer", number and number.integer
        case Kind.INT64 | Kind.DURATION:
            name, value = "integer", None if number is None or number.integer is None else Int64(number.integer)
        case Kind.UINT32:
            unsigned = None if number is None else number.unsigned
            name, value = "unsigned integer", None if unsigned is None else Uint32(unsigned & 0xFFFFFFFF)
        case Kind.FLOAT64:
            name, value = "float", number and number.real
        case _:
            return _failing(node, f"can't handle {node} for arg of type {kind.value}")
    return _failing(node, f"expected {name}; found {node}") if value is None else _value(node, value)


_PLAIN: Final[Mapping[Kind, type]] = {
    Kind.STRING: str,
    Kind.BOOL: bool,
    Kind.INT: int,
    Kind.FLOAT64: float,
    Kind.LIST: list,
    Kind.DICT: dict,
}


def _check(kind: Kind) -> Check:
    """The check of a value for a parameter."""
    if kind is Kind.VALUE:
        return lambda s, value: value
    if kind is Kind.ANY:
        return lambda s, value: None if value is INVALID else value
    plain, nil, name = _PLAIN.get(kind), _NILS.get(kind), kind.value

    def check(s: State, value: Any) -> Any:
        if type(value) is plain:
            return value
        if value is INVALID:
            return nil() if nil is not None else s.fail(f"invalid value; expected {name}")
        found = INTERFACE if value is None else go_type(value)
        if found != name:
            s.fail(f"wrong type for value; expected {name}; got {found}")
        return value

    return check

"""Type-checks an expression: every name must exist, every call must have an overload. :func:`check`.

Called by ``program`` after parsing. It returns the type of the result and notes types and overloads in the nodes; it
raises :class:`CelError` with every error, as cel-go lists them. Source: cel-go ``checker``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.kube.cel.declarations import Language, declarations
from syncline.kube.cel.literals import literal_faults
from syncline.kube.cel.nodes import CelError, Node, dotted, located, walk
from syncline.kube.cel.parser import UInt
from syncline.kube.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, Type, shown


@dataclass(eq=False, slots=True)
class Declared:
    """An object type with the fields that expressions may use."""

    name: str
    fields: dict[str, Type] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


_TYPE_NAMES: dict[str, Type] = {
    name: ("type", (kind,))
    for name, kind in (
        *((one, one) for one in ("bool", "int", "uint", "double", "string", "bytes", "dyn")),
        ("null_type", "null"),
        ("google.protobuf.Timestamp", "timestamp"),
        ("google.protobuf.Duration", "duration"),
        *((one, one) for one in ("net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.Quantity", "kubernetes.Semver")),
        ("kubernetes.NamedFormat", "kubernetes.NamedFormat"),
    )
} | {
    "list": ("type", ("list", DYN)),
    "map": ("type", ("map", DYN, DYN)),
    "type": ("type", ("type", DYN)),
    "optional_type": ("type", ("optional_type", DYN)),
}
_NAMESPACES = frozenset(
    name.rpartition(".")[0] for name in declarations(patches=True) if "." in name and name[0] != "_"
)
_NULLABLE = frozenset({"null", "timestamp", "duration", "object", "dyn"})


MAX_FAULTS = 100
"""The most errors reported for one expression, as in cel-go."""
MAX_TYPE_PARTS = 200
"""The most parts of the type of a subexpression; a schema counts as one."""

Messages = Callable[[str], Type | None]
"""Returns the type of a name before braces, for expressions that create objects."""


def check(
    text: str,
    root: Node,
    variables: Mapping[str, Type],
    messages: Messages | None = None,
    language: Language | None = None,
) -> Type:
    """Return the type of the result; raise :class:`CelError` with every error. ``messages``: types to create;
    ``language``: functions other than Kubernetes'."""
    checker = _Checker(text, variables, messages, language)
    kind = checker.visit(root)
    errors = [report for _, report in sorted(checker.faults, key=lambda fault: fault[0])]
    if checker.left_out:
        errors.append(f"{checker.left_out} more errors were truncated")
    if not errors:
        for node in walk(root):
            node.type = checker.solved(node.type) if node.type is not None else None
        errors = literal_faults(text, root) if language is None or language.literals else []
    if errors:
        raise CelError("\n".join(errors))
    return checker.solved(kind)


class _Checker:
    def __init__(
        self, text: str, variables: Mapping[str, Type], messages: Messages | None, language: Language | None
    ) -> None:
        self._text = text
        self._messages = messages
        self._functions = language.functions if language else declarations(patches=messages is not None)
        self._scopes: list[dict[str, Type]] = [dict(variables)]
        self._bound: dict[Any, Type] = {}
        self._fresh = 0
        self.faults: list[tuple[int, str]] = []
        self.left_out = 0

    # -- parameters -----------------------------------------------------------------------------------------------

    def solved(self, kind: Type) -> Type:
        """Replace type parameters by their known types, unknown ones by any."""
        if kind[0] == "param":
            known = self._bound.get(kind[1])
            return self.solved(known) if known is not None else DYN
        if kind[0] == "object" or len(kind) == 1:
            return kind
        return (kind[0], *(self.solved(part) for part in kind[1:]))

    def _known(self, kind: Type) -> Type:
        while kind[0] == "param" and kind[1] in self._bound:
            kind = self._bound[kind[1]]
        return kind

    def _unify(self, wanted: Type, given: Type) -> bool:
        wanted, given = self._known(wanted), self._known(given)
        if wanted == given:
            return True
        if wanted[0] == "param":
            if not self._occurs(wanted[1], given):
                self._bound[wanted[1]] = given
            return True
        if given[0] == "param":
            if not self._occurs(given[1], wanted):
                self._bound[given[1]] = wanted
            return True
        if "dyn" in (wanted[0], given[0]):
            return True
        if "null" in (wanted[0], given[0]):
            return wanted[0] in _NULLABLE and given[0] in _NULLABLE
        if wanted[0] != given[0] or len(wanted) != len(given) or wanted[0] == "object":
            return False
        return all(self._unify(a, b) for a, b in zip(wanted[1:], given[1:], strict=True))

    def _occurs(self, name: Any, kind: Type) -> bool:
        kind = self._known(kind)
        if kind[0] == "param":
            return bool(kind[1] == name)
        return kind[0] != "object" and any(self._occurs(name, part) for part in kind[1:])

    def _renamed(self, kind: Type, number: int) -> Type:
        if kind[0] == "param":
            return ("param", f"{kind[1]}{number}")
        if kind[0] == "object" or len(kind) == 1:
            return kind
        return (kind[0], *(self._renamed(part, number) for part in kind[1:]))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _fail(self, at: int, message: str) -> Type:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append((at, located(self._text, at, message)))
        else:
            self.left_out += 1
        return ("error",)

    def visit(self, node: Node) -> Type:
        kind: Type = getattr(self, f"_{node.kind}")(node)
        if self._size(kind) > MAX_TYPE_PARTS:
            raise CelError(located(self._text, node.at, f"type of more than {MAX_TYPE_PARTS} parts"))
        node.type = kind
        return kind

    def _size(self, kind: Type) -> int:
        """Return the number of parts of the expanded type: ``.map(a, {a: a})`` doubles them."""
        todo, parts = [kind], 0
        while todo and parts <= MAX_TYPE_PARTS:
            one = self._known(todo.pop())
            parts += 1
            if one[0] not in ("param", "object"):
                todo.extend(one[1:])
        return parts

    def _const(self, node: Node) -> Type:
        value = node.value
        if value is None:
            return NULL
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, UInt):
            return UINT
        return {int: INT, float: DOUBLE, str: STRING, bytes: BYTES}[type(value)]

    def _ident(self, node: Node) -> Type:
        for scope in reversed(self._scopes):
            if node.value in scope:
                return scope[node.value]
        if node.value in _TYPE_NAMES:
            return _TYPE_NAMES[node.value]
        return self._fail(node.at, f"undeclared reference to '{node.value}' (in container '')")

    def _select(self, node: Node) -> Type:
        name = dotted(node)
        if name in self._scopes[0] and not any(name.partition(".")[0] in scope for scope in self._scopes[1:]):
            node.kind, node.value, node.target = "ident", name, None
            return self._scopes[0][name]
        if name in _TYPE_NAMES:
            node.kind, node.value, node.target = "ident", name, None
            return _TYPE_NAMES[name]
        assert node.target is not None
        operand = self._known(self.visit(node.target))
        if operand[0] == "object" and f"__{node.value}__" in operand[1].fields:
            node.value = f"__{node.value}__"  # A reserved word may stand behind a dot as it is.
        kind = self._field(operand, str(node.value), node.at)
        return BOOL if node.test and kind[0] != "error" else kind

    def _field(self, operand: Type, name: str, at: int) -> Type:
        if operand[0] == "optional_type":
            inner = self._field(self._known(operand[1]), name, at)
            return inner if inner[0] == "error" else ("optional_type", inner)
        if operand[0] == "map":
            return self._known(operand[2])
        if operand[0] == "object":
            kind = operand[1].fields.get(name)
            return kind if kind is not None else self._fail(at, f"undefined field '{name}'")
        if operand[0] in ("dyn", "error", "param"):
            return DYN if operand[0] != "error" else operand
        return self._fail(at, f"type '{shown(self.solved(operand))}' does not support field selection")

    def _list(self, node: Node) -> Type:
        item: Type | None = None
        for index, arg in enumerate(node.args):
            kind = self._known(self.visit(arg))
            if index in node.optional:
                if kind[0] not in ("optional_type", "dyn"):
                    self._fail(arg.at, f"expected type 'optional_type({shown(kind)})' but found '{shown(kind)}'")
                kind = kind[1] if kind[0] == "optional_type" else DYN
            item = self._joined(item, kind, arg.at)
        return ("list", item if item is not None else self._new())

    def _new(self) -> Type:
        self._fresh += 1
        return ("param", f"_{self._fresh}")

    def _joined(self, one: Type | None, other: Type, at: int) -> Type:
        if one is None or one[0] == "error":
            return other
        return one if self._unify(one, other) and one[0] != "dyn" else DYN

    def _map(self, node: Node) -> Type:
        key: Type | None = None
        value: Type | None = None
        for index in range(0, len(node.args), 2):
            key = self._joined(key, self.visit(node.args[index]), node.args[index].at)
            kind = self._known(self.visit(node.args[index + 1]))
            if index // 2 in node.optional:
                kind = kind[1] if kind[0] == "optional_type" else DYN
            value = self._joined(value, kind, node.args[index + 1].at)
        return ("map", key or self._new(), value or self._new())

    def _struct(self, node: Node) -> Type:
        kind = self._messages(node.value) if self._messages is not None else None
        if kind is None:
            kind = self._fail(node.at, f"undeclared reference to '{node.value}' (in container '')")
        for index, arg in enumerate(node.args):
            given = self._known(self.visit(arg))
            if index in node.optional:
                given = given[1] if given[0] == "optional_type" else DYN
            name, at = node.parts["names"][index], node.parts["places"][index]
            wanted = self._field(kind, name, at) if kind[0] != "error" else kind
            if "error" not in (wanted[0], given[0]) and not self._unify(wanted, given):
                texts = f"'{shown(self.solved(wanted))}' but provided type is '{shown(self.solved(given))}'"
                self._fail(at, f"expected type of field '{name}' is {texts}")
        return kind

    def _comp(self, node: Node) -> Type:
        parts = node.parts
        over = self._known(self.visit(parts["range"]))
        scope: dict[str, Type] = {}
        names = parts["vars"]
        if over[0] == "list":
            values = [over[1]] if len(names) == 1 else [INT, over[1]]
        elif over[0] == "map":
            values = [over[1]] if len(names) == 1 else [over[1], over[2]]
        elif over[0] in ("dyn", "error", "param"):
            values = [DYN, DYN]
        else:
            what = f"expression of type '{shown(self.solved(over))}' cannot be range of a comprehension"
            self._fail(parts["range"].at, f"{what} (must be list, map, or dynamic)")
            values = [("error",), ("error",)]
        scope = dict(zip(names, values, strict=False))
        accu = self.visit(parts["init"])
        self._scopes.append({node.value: accu})
        self._scopes.append(scope)
        self.visit(parts["cond"])
        step = self.visit(parts["step"])
        if step[0] != "error" and not self._unify(accu, step):
            wanted, found = shown(self.solved(accu)), shown(self.solved(step))
            self._fail(parts["step"].at, f"expected type '{wanted}' but found '{found}'")
        self._scopes.pop()
        result = self.visit(parts["result"])
        self._scopes.pop()
        return result

    def _call(self, node: Node) -> Type:
        if node.value == "_?._":
            operand = self._known(self.visit(node.args[0]))
            node.args[1].type = STRING
            kind = self._field(operand, str(node.args[1].value), node.at)
            return kind if kind[0] in ("error", "optional_type") else ("optional_type", kind)
        name = node.value
        if node.target is not None:
            head = dotted(node.target)
            full = f"{head}.{name}"
            local = any(head.partition(".")[0] in scope for scope in self._scopes)
            if head in _NAMESPACES and not local and full in self._functions:
                node.value, node.target, name = full, None, full
        if name not in self._functions:
            for arg in ([node.target] if node.target else []) + node.args:
                self.visit(arg)
            return self._fail(node.at, f"undeclared reference to '{name}' (in container '')")
        args = ([node.target] if node.target is not None else []) + node.args
        given = [self.visit(arg) for arg in args]
        if any(kind[0] == "error" for kind in given):
            return ("error",)
        return self._resolved(node, name, given)

    def _logical(self, node: Node, name: str, given: list[Type]) -> Type:
        """Check each side alone, so that an error names its side."""
        for arg, kind in zip(node.args, given, strict=True):
            if not self._unify(BOOL, kind):
                self._fail(arg.at, f"expected type 'bool' but found '{shown(self.solved(kind))}'")
        node.overloads = ("logical_and" if name == "_&&_" else "logical_or",)
        return BOOL

    def _resolved(self, node: Node, name: str, given: list[Type]) -> Type:
        if name in ("_&&_", "_||_"):
            return self._logical(node, name, given)
        result: Type | None = None
        found: list[str] = []
        for overload in self._functions[name]:
            if overload.member != (node.target is not None) or len(overload.args) != len(given):
                continue
            self._fresh += 1
            before = dict(self._bound)
            wanted = [self._renamed(kind, self._fresh) for kind in overload.args]
            if not all(self._unify(a, b) for a, b in zip(wanted, given, strict=True)):
                self._bound = before
                continue
            found.append(overload.id)
            kind = self._known(self._renamed(overload.result, self._fresh))
            if result is None:
                result = kind
            elif self.solved(result) != self.solved(kind):
                result = DYN
        node.overloads = tuple(found)
        if result is not None:
            return result
        texts = [shown(self.solved(kind)) for kind in given]
        listed = f"{texts[0]}.({', '.join(texts[1:])})" if node.target is not None else f"({', '.join(texts)})"
        return self._fail(node.at, f"found no matching overload for '{name}' applied to '{listed}'")

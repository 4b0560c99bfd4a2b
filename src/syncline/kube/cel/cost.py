"""Estimates the cost of an expression before it is evaluated.

Called when definitions are checked. From a checked tree and the largest sizes that a schema allows it computes the
highest cost in Kubernetes' units. Source: cel-go ``checker/cost.go`` and apiserver ``pkg/cel/library/cost.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from syncline.kube.cel.nodes import Node
from syncline.kube.cel.types import Type

MAX_COST = (1 << 64) - 1
TRAVERSAL, REGEX = 0.1, 0.25
FORMAT_REGEX = 128

Range = tuple[int, int]
Path = tuple[str, ...]
SizeOf = Callable[[Path], int | None]
"""Returns the most entries or characters of the value at a path that begins with a variable's name; None if unknown."""

UNKNOWN: Range = (0, MAX_COST)
ONE: Range = (1, 1)
ZERO: Range = (0, 0)


def _add(*ranges: Range) -> Range:
    return min(sum(r[0] for r in ranges), MAX_COST), min(sum(r[1] for r in ranges), MAX_COST)


def _times(one: Range, other: Range) -> Range:
    return min(one[0] * other[0], MAX_COST), min(one[1] * other[1], MAX_COST)


def _factor(one: Range, factor: float) -> Range:
    return _scaled(one[0], factor), _scaled(one[1], factor)


def _scaled(value: int, factor: float) -> int:
    scaled = float(value) * factor
    return MAX_COST if scaled >= 2.0**64 else min(math.ceil(scaled), MAX_COST)


def _union(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


def expression_cost(root: Node, size_of: SizeOf) -> int:
    return _Coster(size_of).cost(root)[1]


_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class _Coster:
    def __init__(self, size_of: SizeOf) -> None:
        self._size_of = size_of
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, tuple[str, Range, Range]] = {}
        self._locals: dict[str, list[tuple[Path, Range | None, Any]]] = {}

    def cost(self, node: Node) -> Range:
        found: Range = getattr(self, f"_{node.kind}")(node)
        return found

    # -- sizes ----------------------------------------------------------------------------------------------------

    def _path(self, node: Node) -> Path:
        if node.kind == "ident" and self._locals.get(node.value):
            return self._locals[node.value][-1][0]
        return self._paths.get(id(node), ())

    def _size(self, node: Node) -> Range | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        if node.kind == "const":
            count = len(node.value) if isinstance(node.value, str | bytes) else 1
            return (count, count)
        if node.kind in ("list", "map"):
            count = len(node.args) // (2 if node.kind == "map" else 1)
            return (count, count)
        found = self._estimate(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if _scalar(node.type):
            return ONE
        if node.kind == "ident" and self._locals.get(node.value):
            return self._locals[node.value][-1][1]
        return None

    def _estimate(self, path: Path) -> Range | None:
        if not path or path[0] == "@result":
            return None
        most = self._size_of(path)
        return None if most is None else (0, most)

    def _known(self, node: Node) -> Range:
        found = self._size(node)
        return UNKNOWN if found is None else found

    def _entry(self, node: Node) -> tuple[str, Range, Range] | None:
        if id(node) in self._entries:
            return self._entries[id(node)]
        if node.kind == "ident" and self._locals.get(node.value):
            return self._locals[node.value][-1][2]  # type: ignore[no-any-return]
        return None

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _const(self, node: Node) -> Range:
        return ZERO

    def _ident(self, node: Node) -> Range:
        self._paths[id(node)] = self._path(node) if self._locals.get(node.value) else (str(node.value),)
        return ONE

    def _select(self, node: Node) -> Range:
        assert node.target is not None
        operand = self.cost(node.target)
        if node.test:
            return operand
        self._paths[id(node)] = (*self._path(node.target), str(node.value))
        kind = (node.target.type or ("dyn",))[0]
        return _add(operand, ONE) if kind in ("map", "object", "param") else operand

    def _list(self, node: Node) -> Range:
        item = (0, 0) if not node.args else (MAX_COST, 0)
        total = ZERO
        for arg in node.args:
            total = _add(total, self.cost(arg))
            item = _union(item, self._known(arg))
        self._entries[id(node)] = ("list", ONE, item)
        return _add(total, (10, 10))

    def _map(self, node: Node) -> Range:
        key = value = (0, 0) if not node.args else (MAX_COST, 0)
        total = ZERO
        for index, arg in enumerate(node.args):
            total = _add(total, self.cost(arg))
            if index % 2:
                value = _union(value, self._known(arg))
            else:
                key = _union(key, self._known(arg))
        self._entries[id(node)] = ("map", key, value)
        return _add(total, (30, 30))

    def _comp(self, node: Node) -> Range:
        parts = node.parts
        over, init, accu = parts["range"], parts["init"], str(node.value)
        total = _add(self.cost(over), self.cost(init))
        known = self._size(init)
        self._locals.setdefault(accu, []).append((self._path(init), known, self._entry(init)))
        if parts["cond"].kind == "const" and parts["cond"].value is False:
            total = _add(total, self.cost(parts["result"]))
            self._locals[accu].pop()
            self._copy(node, parts["result"])
            return total
        names = parts["vars"]
        for name, local in zip(names, self._variables(over, len(names)), strict=True):
            self._locals.setdefault(name, []).append(local)
        each = _add(self.cost(parts["cond"]), self.cost(parts["step"]))
        for name in names:
            self._locals[name].pop()
        total = _add(total, self.cost(parts["result"]))
        self._locals[accu].pop()
        count = self._known(over)
        if init.kind == "const":
            found = self._size(init)
            if found is not None:
                self._sizes[id(node)] = found
        else:
            self._sizes[id(node)] = count
            entry = self._entry(parts["step"])
            if entry is not None:
                self._entries[id(node)] = entry
        return _add(total, _times(count, each))

    def _variables(self, over: Node, count: int) -> list[tuple[Path, Range | None, Any]]:
        entry, path = self._entry(over), self._path(over)
        is_list = (entry[0] if entry else (over.type or ("dyn",))[0]) == "list"
        key, value = (entry[1], entry[2]) if entry else (None, None)
        if count == 1:
            return [((*path, "@items" if is_list else "@keys"), value if is_list else key, None)]
        return [
            ((*path, "@indices" if is_list else "@keys"), key, None),
            ((*path, "@items" if is_list else "@values"), value, None),
        ]

    def _copy(self, node: Node, source: Node) -> None:
        found, entry = self._size(source), self._entry(source)
        if found is not None:
            self._sizes[id(node)] = found
        if entry is not None:
            self._entries[id(node)] = entry

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> Range:
        if node.value == "dyn":
            found = _add(ONE, self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return found
        costs = [self.cost(arg) for arg in node.args]
        total = self.cost(node.target) if node.target is not None else ZERO
        work, size = (MAX_COST, 0), None
        for overload in node.overloads or (str(node.value),):
            found, result = self._function(node, overload, costs)
            work = _union(work, found)
            if result is not None:
                size = result if size is None else _union(size, result)
            if overload in ("index_list", "index_map"):
                entry = self._entry(node.args[0])
                size = entry[2] if entry else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return _add(total, work)

    def _function(self, node: Node, overload: str, costs: list[Range]) -> tuple[Range, Range | None]:
        """Return (cost, size of the result) of one overload, including the cost of its arguments."""
        summed = _add(*costs) if costs else ZERO
        special = self._kubernetes(node, overload)
        if special is not None:
            return _add(special[0], summed), special[1]
        return self._standard(node, overload, costs, summed)

    def _standard(self, node: Node, overload: str, costs: list[Range], summed: Range) -> tuple[Range, Range | None]:
        args = node.args
        known = self._known
        match overload:
            case "string_format":
                assert node.target is not None
                return _add(_factor(known(node.target), TRAVERSAL), summed), None
            case "string_to_bytes":
                low, high = known(args[0])
                return _add(_factor((low, high), TRAVERSAL), summed), (low, min(high * 4, MAX_COST))
            case "bytes_to_string":
                low, high = known(args[0])
                return _add(_factor((low, high), TRAVERSAL), summed), (low // 4, high)
            case "starts_with_string" | "ends_with_string":
                return _add(_factor(known(args[0]), TRAVERSAL), summed), None
            case "in_list":
                return _add(known(args[1]), summed), None
            case "matches_string":
                subject, pattern = (node.target, args[0]) if node.target is not None else (args[0], args[1])
                text = _factor(_add(known(subject), ONE), TRAVERSAL)
                return _add(_times(text, _factor(known(pattern), REGEX)), summed), None
            case "contains_string":
                assert node.target is not None
                work = _times(_factor(known(node.target), TRAVERSAL), _factor(known(args[0]), TRAVERSAL))
                return _add(work, summed), None
            case "logical_and" | "logical_or":
                return (costs[0][0], _add(costs[0], costs[1])[1]), None
            case "conditional":
                entry_one, entry_other = self._entry(args[1]), self._entry(args[2])
                if entry_one and entry_other:
                    keys, values = _union(entry_one[1], entry_other[1]), _union(entry_one[2], entry_other[2])
                    self._entries[id(node)] = (entry_one[0], keys, values)
                return _add(costs[0], _union(costs[1], costs[2])), _union(known(args[1]), known(args[2]))
            case "add_string" | "add_bytes" | "add_list":
                return self._sum(node, overload, summed)
        if overload in ("equals", "not_equals") or (overload.endswith(("_string", "_bytes")) and node.value in _ORDERS):
            most = min(known(args[0])[1], known(args[1])[1])
            return _add(_factor((1 if most > 0 else 0, most), TRAVERSAL), summed), None
        return _add(ONE, summed), None

    def _sum(self, node: Node, overload: str, summed: Range) -> tuple[Range, Range | None]:
        one, other = node.args
        result = _add(self._known(one), self._known(other))
        entry_one, entry_other = self._entry(one), self._entry(other)
        if entry_one and entry_other:
            keys, values = _union(entry_one[1], entry_other[1]), _union(entry_one[2], entry_other[2])
            self._entries[id(node)] = (entry_one[0], keys, values)
        work = ONE if overload == "add_list" else _factor(result, TRAVERSAL)
        return _add(work, summed), result

    def _kubernetes(self, node: Node, overload: str) -> tuple[Range, Range | None] | None:
        name, target, args = str(node.value), node.target, node.args
        if name in _FLAT:
            return ONE, None
        if name in _LIST_WALKS and target is not None:
            return self._walk(target), None
        if name in ("url",) and args:
            return _factor(self._known(args[0]), TRAVERSAL), self._known(args[0])
        if name in ("lowerAscii", "upperAscii", "substring", "trim") and target is not None:
            return _factor(self._known(target), TRAVERSAL), self._known(target)
        if name == "replace" and target is not None:
            return self._replace(target, args)
        if name == "split" and target is not None:
            most = self._known(target)[1]
            if len(args) > 1 and args[1].kind == "const":
                most = int(args[1].value) & MAX_COST
            return _factor(self._known(target), 2 * TRAVERSAL), (0, most)
        if name == "join" and target is not None:
            return self._join(target, args)
        if name in ("find", "findAll") and target is not None:
            text = _factor(_add(self._known(target), ONE), TRAVERSAL)
            work = _times(text, _factor(self._known(args[0]), REGEX))
            return work, (0, self._known(target)[1])
        if name in _READS and args:
            return _factor(self._known(args[0]), TRAVERSAL), None
        if name == "ip.isCanonical":
            return _factor(self._known(args[0]), 2 * TRAVERSAL), None
        if name in ("containsIP", "containsCIDR"):
            return self._within(name, overload, args), None
        if name == "validate":
            return _factor(_factor(self._known(args[0]), TRAVERSAL), FORMAT_REGEX * REGEX), None
        if name == "_==_" and args[0].type == args[1].type and (args[0].type or ("",))[0] in _CHEAP_EQUALS:
            return ONE, None
        return None

    def _walk(self, target: Node) -> Range:
        kind: Type = target.type or ("dyn",)
        if kind[0] != "list":
            return _factor(self._known(target), TRAVERSAL)
        each = ONE
        if kind[1][0] in ("string", "bytes"):
            size = self._estimate((*self._path(target), "@items")) if self._path(target) else None
            each = _add(each, _factor(size or UNKNOWN, TRAVERSAL))
        return _times(self._known(target), each)

    def _replace(self, target: Node, args: list[Node]) -> tuple[Range, Range | None]:
        size, old, new = self._known(target), self._known(args[0]), self._known(args[1])
        most, kept_most = 0, 0
        if old[0] == 0:
            most, kept_most = min(size[1] + 1, MAX_COST), size[1]
        elif new[1] <= old[0]:
            kept_most = size[1]
        else:
            most = math.ceil(size[1] / old[0])
        least, kept_least = 0, 0
        if old[1] == 0:
            least, kept_least = min(size[0] + 1, MAX_COST), size[0]
        elif old[1] <= new[0]:
            kept_least = size[0]
        else:
            least = math.ceil(size[0] / old[1])
        result = _add(_times((least, most), new), (kept_least, kept_most))
        return _factor(size, 2 * TRAVERSAL), result

    def _join(self, target: Node, args: list[Node]) -> tuple[Range, Range | None]:
        count = self._known(target)
        size = ZERO
        if (target.type or ("dyn",))[0] == "list":
            path = self._path(target)
            each = self._estimate((*path, "@items")) if path else None
            size = _times(count, each or UNKNOWN)
        if args:
            gaps = (max(count[0] - 1, 0), max(count[1] - 1, 0))
            size = _add(size, _times(self._known(args[0]), gaps))
        return _factor(size, TRAVERSAL), size

    def _within(self, name: str, overload: str, args: list[Node]) -> Range:
        size = (4, 16)
        work = _factor(_add(size, size), TRAVERSAL)
        if name == "containsCIDR":
            work = _add(work, _factor(size, TRAVERSAL), ONE)
        if overload.endswith("_string"):
            work = _add(work, _factor(self._known(args[0]), TRAVERSAL))
        return work


_ORDERS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_FLAT = frozenset(
    (
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger"),
        *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)
_LIST_WALKS = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_READS = frozenset({"cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"})
_CHEAP_EQUALS = frozenset({"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"})


def _scalar(kind: Type | None) -> bool:
    if kind is None:
        return False
    return kind[0] in _SCALARS or (kind[0] == "optional_type" and _scalar(kind[1]))

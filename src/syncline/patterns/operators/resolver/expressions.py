"""Constraints in CEL: expressions over the properties of a bundle, with ``semver_compare``.

Source: operator-framework/api ``pkg/constraints/cel.go``. An expression that fails for a bundle does not hold for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from syncline.kube.cel.declarations import Language, declarations, declared
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import CostExceeded, Program, compile_program
from syncline.kube.cel.types import BOOL, DYN, STRING, Type
from syncline.kube.cel.values import EvaluationError
from syncline.patterns.operators.catalogs.model import Property
from syncline.patterns.operators.resolver.versions import Version, parse_tolerant

MOST_CHARS: Final = 10_000
MOST_STEPS: Final = 2_000_000
"""Steps that one constraint may take for all bundles of a resolution together."""
_VARIABLES: Final[dict[str, Type]] = {"properties": ("list", ("map", STRING, DYN))}
_STANDARD: Final = frozenset(
    (
        *("!_", "-_", "@not_strictly_false", "_&&_", "_||_", "_?_:_", "_==_", "_!=_", "@in", "_[_]"),
        *("_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_", "size", "contains", "startsWith"),
        *("endsWith", "matches", "int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration"),
        *("dyn", "type", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    )
)
"""The functions of the language itself: upstream adds one, and none of Kubernetes'."""


class ExpressionError(ValueError):
    """An expression cannot be evaluated."""


@lru_cache(maxsize=1)
def _language() -> Language:
    standard = {name: overloads for name, overloads in declarations().items() if name in _STANDARD}
    more = declared(["semver_compare: (dyn,dyn)->int"])
    return Language(standard | more, macros=False, literals=False)


@lru_cache(maxsize=256)
def _program(text: str) -> Program:
    return compile_program(text, _VARIABLES, language=_language())


def holding(rule: str) -> Callable[[Sequence[Property]], bool]:
    """Return whether an expression holds for the properties of a bundle. Raises :class:`ExpressionError`, later too,
    when all bundles together took too many steps."""
    if len(rule) > MOST_CHARS:
        raise ExpressionError(f"an expression has at most {MOST_CHARS} characters, found {len(rule)}")
    try:
        program = _program(rule)
    except CelError as error:
        raise ExpressionError(str(error)) from None
    if program.type != BOOL:
        raise ExpressionError("cel expressions must have type Bool")
    left = [MOST_STEPS]

    def spend(steps: int) -> None:
        left[0] -= steps

    def holds(properties: Sequence[Property]) -> bool:
        given = [{"type": one.kind, "value": _as_json(one.value)} for one in properties]
        try:
            found = program.evaluate({"properties": given, "@semver_compare": _compare}, spend, limit=left[0])
        except CostExceeded:
            raise ExpressionError(f"{json.dumps(rule[:80])} takes more than {MOST_STEPS} steps") from None
        except EvaluationError:
            return False
        return found is True

    return holds


def _as_json(value: Any) -> Any:
    """Return a value with numbers as upstream reads them from JSON: all are doubles."""
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _compare(one: Any, other: Any) -> int:
    left, right = _version(one), _version(other)
    return (left > right) - (left < right)


def _version(value: Any) -> Version:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    try:
        return parse_tolerant(text)
    except ValueError:
        raise EvaluationError(f"unable to parse '{text[:64]}' to semver format") from None

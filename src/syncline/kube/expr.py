"""CEL expressions behind one small interface.

Called for validation rules of custom resources. In comes an expression and the types of its variables; out comes a
:class:`Rule` that is evaluated on plain values. The engine (``cel-expr-python``, in the extra ``local``) is loaded when
the first expression is compiled; where it is not installed, :func:`engine_available` says so and nothing else works.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["Rule", "RuleError", "compile_rule", "engine_available"]

_NO_KEY = re.compile(r'Key not found in map : "?([^"]*)"?')


class RuleError(Exception):
    """An expression that cannot be compiled, or that failed on a value; the text is the engine's, shortened."""


@lru_cache(maxsize=1)
def engine_available() -> bool:
    """Whether expressions can be compiled on this machine."""
    return find_spec("cel_expr_python") is not None


class Rule:
    """A compiled expression."""

    __slots__ = ("_expression", "returns", "text")

    def __init__(self, text: str, expression: Any) -> None:
        self.text = text
        self._expression = expression
        self.returns: str = expression.return_type().name().lower()

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value as plain Python; raises :class:`RuleError` as Kubernetes words evaluation errors."""
        try:
            value = self._expression.eval(data=dict(variables))
        except RuntimeError as error:
            raise RuleError(_evaluation_text(str(error))) from error
        if value.type().name() == "ERROR":
            raise RuleError(_evaluation_text(str(value.plain_value())))
        return value.plain_value()


def _evaluation_text(text: str) -> str:
    missing = _NO_KEY.search(text)
    if missing:
        return f"no such key: {missing.group(1)}"
    return text.partition(": ")[2] or text


@lru_cache(maxsize=4096)
def compile_rule(text: str, variables: tuple[tuple[str, str], ...]) -> Rule:
    """Compile against variables given as (name, JSON type); raises :class:`RuleError` with the place of the fault.

    Types are ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``, ``timestamp``, ``duration``;
    anything else is checked when it is evaluated.
    """
    try:
        return Rule(text, _environment(variables).compile(text))
    except RuntimeError as error:
        raise RuleError(f"compilation failed: {error}") from error


@lru_cache(maxsize=256)
def _environment(variables: tuple[tuple[str, str], ...]) -> Any:
    engine = import_module("cel_expr_python.cel")
    kinds = {
        "string": engine.Type.STRING,
        "integer": engine.Type.INT,
        "number": engine.Type.DOUBLE,
        "boolean": engine.Type.BOOL,
        "array": engine.Type.LIST,
        "timestamp": engine.Type.TIMESTAMP,
        "duration": engine.Type.DURATION,
    }
    return engine.NewEnv(
        variables={name: kinds.get(kind, engine.Type.DYN) for name, kind in variables},
        extensions=_extensions(),
        functions=_functions(engine),
    )


def _extensions() -> list[Any]:
    strings = import_module("cel_expr_python.ext.ext_strings")
    optional = import_module("cel_expr_python.ext.ext_optional")
    return [strings.ExtStrings(), optional.ExtOptional()]


def _functions(engine: Any) -> list[Any]:
    """Kubernetes' own additions: lists and regular expressions (apiserver ``cel/library``)."""
    kind = engine.Type

    def member(name: str, parameters: list[Any], returns: Any, work: Any) -> Any:
        overload = engine.Overload(f"syncline_{name}", returns, parameters, True, work)
        return engine.FunctionDecl(name, [overload])

    return [
        member("isSorted", [kind.LIST], kind.BOOL, _is_sorted),
        member("sum", [kind.LIST], kind.DYN, sum),
        member("min", [kind.LIST], kind.DYN, min),
        member("max", [kind.LIST], kind.DYN, max),
        member("find", [kind.STRING, kind.STRING], kind.STRING, _find),
        member("findAll", [kind.STRING, kind.STRING], kind.LIST, _find_all),
    ]


def _is_sorted(items: Any) -> bool:
    values = list(items)
    return values == sorted(values)


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [found.group(0) for found in re.finditer(pattern, text)]

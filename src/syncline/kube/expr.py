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

from syncline.kube.cellibrary import library

__all__ = ["Rule", "RuleError", "UnsupportedRule", "compile_rule", "engine_available"]

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_LACKING = frozenset({"format", "semver", "isSemver", "authorizer", "variables", "jsonpatch"})
"""Names of Kubernetes' CEL libraries that the engine here does not know."""

_TWO_VARIABLES = re.compile(
    r"\.(all|exists|existsOne|transformList|transformMap|transformMapEntry)\(\s*\w+\s*,\s*\w+\s*,"
)
_LIST_SEARCH = re.compile(r"no matching overload for '(?:indexOf|lastIndexOf)' applied to 'list")

_NO_KEY = re.compile(r'Key not found in map : "?([^"]*)"?')


_NO_INDEX = re.compile(r"index=(-?\d+) size=")


class RuleError(Exception):
    """An expression that cannot be compiled, or that failed on a value; the text is the engine's, shortened."""


@lru_cache(maxsize=1)
def engine_available() -> bool:
    """Whether expressions can be compiled on this machine."""
    return find_spec("cel_expr_python") is not None


class UnsupportedRule(RuleError):
    """A valid expression that uses a library which is missing here: to be accepted, and not enforced."""


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
    """The engine's words made cel-go's, which are those that Kubernetes prints."""
    missing = _NO_KEY.search(text)
    if missing:
        return f"no such key: {missing.group(1)}"
    index = _NO_INDEX.search(text)
    if index:
        return f"index out of bounds: {index.group(1)}"
    for ours, theirs in (("divide by zero", "division by zero"), ("No matching overloads", "no such overload")):
        if ours in text:
            return theirs
    return text.partition(": ")[2] or text


@lru_cache(maxsize=4096)
def compile_rule(text: str, variables: tuple[tuple[str, str], ...]) -> Rule:
    """Compile against variables given as (name, JSON type); raises :class:`RuleError` with the place of the fault.

    Types are ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``, ``timestamp``, ``duration``;
    anything else is checked when it is evaluated. A rule that needs a missing library raises :class:`UnsupportedRule`.
    """
    try:
        return Rule(text, _environment(variables).compile(text))
    except RuntimeError as error:
        kind = UnsupportedRule if _lacks_library(text, str(error)) else RuleError
        raise kind(f"compilation failed: {error}") from error


def _lacks_library(text: str, error: str) -> bool:
    unknown = _LACKING.intersection(_UNDECLARED.findall(error))
    return bool(unknown or _TWO_VARIABLES.search(text) or _LIST_SEARCH.search(error))


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
        functions=library(engine),
    )


def _extensions() -> list[Any]:
    strings = import_module("cel_expr_python.ext.ext_strings")
    optional = import_module("cel_expr_python.ext.ext_optional")
    return [strings.ExtStrings(), optional.ExtOptional()]

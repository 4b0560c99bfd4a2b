"""The CEL selectors of Placements: their environment, their programs, what they see of a cluster.

Expressions see ``managedCluster`` as upstream's Go types write it: unknown fields are absent, as are empty ones that Go
omits. Rules: ``pkg/placement/helpers/cel.go`` of upstream and ``pkg/cel`` of its sdk-go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from syncline.fleet.expressions import FUNCTIONS, MAX_EXPRESSION, language_with
from syncline.fleet.hub.placement.model import Cluster
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import Program, compile_program
from syncline.kube.cel.types import DYN, STRING, Type
from syncline.kube.cel.values import EvaluationError, no_overload
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import QuantityError, text_as_read

MAX_JSON: Final = 100_000
"""The most characters that ``parseJSON`` reads."""
_VARIABLES: Final[dict[str, Type]] = {"managedCluster": ("map", STRING, DYN)}
_MORE: Final = ("parseJSON: string.()->dyn", "scores: dyn.(string)->list<dyn>")


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> Program | str:
    if len(text) > MAX_EXPRESSION:
        return f"ERROR: <input>:1:0: found {len(text)} characters; at most {MAX_EXPRESSION}"
    try:
        return compile_program(text, _VARIABLES, language=language_with(*_MORE))
    except CelError as error:
        return str(error)


def compiled(text: str) -> Program:
    """Return the program of an expression. Raises :class:`CelError` with cel-go's text."""
    found = _compiled(text)
    if isinstance(found, str):
        raise CelError(found)
    return found


def reads_scores(expressions: Iterable[str]) -> bool:
    """Return whether one of the expressions reads AddOnPlacementScores."""
    return any(".scores" in "".join(text.split()) for text in expressions)


def holds(program: Program, cluster: Mapping[str, Any], scores: Mapping[tuple[str, str], Obj]) -> str:
    """Return why an expression is not true for a cluster, as :func:`as_seen` returns it; empty if it is true."""
    functions: dict[str, Any] = {**_FUNCTIONS, "@scores": _reader(scores)}
    try:
        value = program.evaluate({"managedCluster": cluster, **functions})
    except EvaluationError as error:
        return f"{program.text} fails: {error}"
    return "" if value is True else f"{program.text} is not true"


# -- functions -------------------------------------------------------------------------------------------------


def _reader(scores: Mapping[tuple[str, str], Obj]) -> Callable[[Any, Any], list[Any]]:
    def read(cluster: Any, resource: Any) -> list[Any]:
        if not isinstance(cluster, dict) or not isinstance(resource, str):
            raise no_overload()
        name = dig(cluster, "metadata", "name")
        if not isinstance(name, str):
            raise EvaluationError("failed to get cluster name")
        found = scores.get((name, resource))
        if found is None:
            text = f'addonplacementscore.cluster.open-cluster-management.io "{resource}" not found'
            raise EvaluationError(f"failed to get score: {text}")
        return [
            {"name": str(one.get("name") or ""), "value": int(one.get("value") or 0)}
            for one in dig(found, "status", "scores") or ()
        ]

    return read


def _parse_json(text: Any) -> Any:
    if not isinstance(text, str):
        raise no_overload()
    if len(text) > MAX_JSON:
        raise EvaluationError(f"failed to parse json: found {len(text)} characters; at most {MAX_JSON}")
    try:
        return json.loads(text, parse_int=float, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"failed to parse json: {error}") from None


def _no_constant(text: str) -> Any:
    raise ValueError(f"invalid character '{text[:1]}' looking for beginning of value")


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **FUNCTIONS,
    "@parseJSON": _parse_json,
}


# -- a cluster as Go's types write it --------------------------------------------------------------------------

_ALWAYS, _FILLED = True, False
_SPEC: Final = {
    "managedClusterClientConfigs": _FILLED,
    "hubAcceptsClient": _ALWAYS,
    "leaseDurationSeconds": _FILLED,
    "taints": _FILLED,
}
_STATUS: Final = {
    "conditions": _ALWAYS,
    "capacity": _FILLED,
    "allocatable": _FILLED,
    "version": _ALWAYS,
    "clusterClaims": _FILLED,
    "managedNamespaces": _FILLED,
}
_DEFAULTS: Final[Mapping[str, Any]] = {"hubAcceptsClient": False, "version": {}, "key": "", "effect": "", "url": ""}


def as_seen(cluster: Cluster) -> dict[str, Any]:
    """Return ``managedCluster`` of expressions: Go's typed object without apiVersion and kind."""
    obj = cluster.obj
    spec, status = _typed(dig(obj, "spec"), _SPEC), _typed(dig(obj, "status"), _STATUS)
    _each(spec, "managedClusterClientConfigs", {"url": _ALWAYS, "caBundle": _FILLED})
    _each(spec, "taints", {"key": _ALWAYS, "value": _FILLED, "effect": _ALWAYS, "timeAdded": _ALWAYS})
    _each(status, "clusterClaims", {"name": _FILLED, "value": _FILLED})
    status["version"] = _typed(status["version"], {"kubernetes": _FILLED})
    for name in ("capacity", "allocatable"):
        if name in status:
            status[name] = {key: _quantity(value) for key, value in status[name].items()}
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if value not in (None, "", [], {})}
    return {"metadata": metadata, "spec": spec, "status": status}


def _typed(value: Any, fields: Mapping[str, bool]) -> dict[str, Any]:
    """Return the known fields of an object; those that are not always written only if they are filled."""
    given = value if isinstance(value, dict) else {}
    found = {}
    for name, always in fields.items():
        one = given.get(name)
        if always:
            found[name] = one if one is not None else _DEFAULTS.get(name)
        elif one:
            found[name] = one
    return found


def _each(parent: dict[str, Any], name: str, fields: Mapping[str, bool]) -> None:
    if name in parent:
        parent[name] = [_typed(one, fields) for one in parent[name]]


def _quantity(value: Any) -> str:
    try:
        return text_as_read(value)
    except QuantityError:
        return str(value)

"""The CEL environment of Open Cluster Management, which Placements and condition rules share: :func:`language_with`.

Rules: ``BaseEnvOpts`` in ``pkg/cel/common`` of upstream's sdk-go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from syncline.kube.cel.declarations import Language, Overload, declarations, declared
from syncline.kube.cel.values import Optional, no_overload

MAX_EXPRESSION: Final = 10_000
"""The most characters of an expression; upstream's limit is that of the API."""
_ABSENT: Final = frozenset(
    (
        *("slice", "distinct", "flatten", "lists.range", "sort", "@sortByAssociatedKeys", "cel.@mapInsert"),
        *("sets.contains", "sets.equivalent", "sets.intersects"),
        *("path", "group", "serviceAccount", "resource", "subresource", "namespace", "name", "fieldSelector"),
        *("labelSelector", "check", "errored", "error", "allowed", "reason"),
    )
)
"""Functions of Kubernetes' rules that upstream's environment lacks."""
_MORE: Final = (
    "semver: (string)->kubernetes.Semver",
    "isSemver: (string)->bool",
    "reverse: string.()->string",
    "optional.unwrap: (list<optional_type<A>>)->list<A>",
    "unwrapOpt: list<optional_type<A>>.()->list<A>",
)
_COMPARISONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


def _same_types(overloads: Iterable[Overload]) -> tuple[Overload, ...]:
    return tuple(one for one in overloads if len(set(one.args)) == 1)


@lru_cache(maxsize=4)
def language_with(*more: str) -> Language:
    """Return the environment with the functions declared by ``more``: numbers of different types do not compare,
    literals are not checked beforehand."""
    found = {
        name: _same_types(overloads) if name in _COMPARISONS else overloads
        for name, overloads in declarations().items()
        if name not in _ABSENT
    }
    return Language(found | declared((*_MORE, *more)), macros=False, literals=False)


def _reverse(text: Any) -> str:
    if not isinstance(text, str):
        raise no_overload()
    return text[::-1]


def _unwrap(items: Any) -> list[Any]:
    if not isinstance(items, list) or not all(isinstance(one, Optional) for one in items):
        raise no_overload()
    return [one.value for one in items if one.has]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "@reverse": _reverse,
    "@optional.unwrap": _unwrap,
    "@unwrapOpt": _unwrap,
}
"""What the functions do that Kubernetes' own environment lacks; variables of every evaluation."""

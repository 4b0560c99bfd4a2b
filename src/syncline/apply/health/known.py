"""Health of kinds outside Kubernetes, from the tables in ``apply/health/known``.

:mod:`syncline.apply.health.check` uses it for kinds without a built-in check. One file per API group, named after it
(``_`` stands for ``*``, as in Argo CD's folders); an exact kind wins over a wildcard. The files are package data, read
at the first use of their group.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from syncline.kube.objects import GroupKind
from syncline.kube.text.glob import glob_matches
from syncline.kube.yaml.loading import load

if TYPE_CHECKING:
    from syncline.apply.health.table import Step

SUFFIX = ".yaml"
ANY = "_"


@cache
def _names() -> tuple[str, ...]:
    folder = files("syncline.apply.health").joinpath("known")
    return tuple(sorted(one.name.removesuffix(SUFFIX) for one in folder.iterdir() if one.name.endswith(SUFFIX)))


@cache
def _table(name: str) -> dict[str, tuple[Step, ...]]:
    """Return kind → steps. Raises :class:`TableError`, naming file and kind."""
    from syncline.apply.health.rules import RULES
    from syncline.apply.health.table import TableError, parse_steps

    text = files("syncline.apply.health").joinpath("known", name + SUFFIX).read_text(encoding="utf-8")
    parsed: dict[str, tuple[Step, ...]] = {}
    entries: dict[str, Any] = load(text, file=name + SUFFIX)
    for kinds, steps in entries.items():
        try:
            parsed |= dict.fromkeys(kinds.split("|"), parse_steps(steps, RULES))
        except TableError as error:
            raise TableError(f"{name}{SUFFIX}: {kinds}: {error}") from error
    return parsed


@cache
def known_steps(kind: GroupKind) -> tuple[Step, ...] | None:
    """Return the steps for this kind; None if no table has it."""
    if kind.group in _names():
        exact = _table(kind.group).get(kind.kind)
        if exact is not None:
            return exact
    for name in _names():
        if ANY in _table_kinds(name) and glob_matches(name.replace(ANY, "*"), kind.group):
            return _table(name)[ANY]
    return None


@cache
def _table_kinds(name: str) -> frozenset[str]:
    """Return a table's kinds if it has a wildcard, by its name or, for whole groups, by its content; else nothing."""
    return frozenset(_table(name)) if name.startswith(ANY) or name in WHOLE_GROUPS else frozenset()


WHOLE_GROUPS = (
    "grafana-org-operator.kubitus-project.gitlab.io",
    "microgateway.airlock.com",
    "operator.victoriametrics.com",
)
"""Groups with one rule for all kinds; listed so that no other file must be read to find them."""


def all_tables() -> dict[str, dict[str, tuple[Step, ...]]]:
    """Return group → kind → steps, for tests and for the list of kinds."""
    return {name: _table(name) for name in _names()}

"""Which marks a test has: they follow from what its module, its helpers and its fixtures use, so none is forgotten.

``pytest -m "not process"`` runs what needs no process, ``-m "faults and live"`` faults on served clusters. The names
are registered in pyproject.toml.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest

CLIENTS = re.compile(r"\b(kubectl|oc|argocd|helm|kustomize|git)\b")
"""Reasons for a skip that name one of these are about a client that this machine lacks."""
ANYWHERE = {
    "live": {"served_cluster", "running_cluster"},
    "process": {"subprocess", "sandbox_problem", "Popen"},
}
"""A test whose module, or a helper of it, has one of these names has the mark."""
HERE = {
    "faults": {"FaultyTransport", "CrashingTransport", "FaultRates", "Refusing", "Killed"},
    "clients": {"needs_kubectl", "Kubectl"},
}
"""The same for its module and fixtures alone: worlds that can also fail are helpers of tests in which nothing does."""
PLACES = {
    "live": ("_live",),
    "faults": ("fault", "killed", "crash", "power_cut", "disk_full", "deaths"),
    "clients": ("tests.clients.", "against_", "kubectl"),
}
"""And the tests of modules whose names hold one of these."""


@cache
def marks_of(name: str) -> frozenset[str]:
    """The marks of a module by its dotted name."""
    names = _names(name)
    found = {mark for mark, uses in HERE.items() if uses & names}
    found |= {mark for mark, places in PLACES.items() if any(place in name for place in places)}
    seen: set[str] = set()
    edge = [name]
    while edge:
        if (at := edge.pop()) not in seen:
            seen.add(at)
            found |= {mark for mark, uses in ANYWHERE.items() if uses & _names(at)}
            edge += _helpers(at)
    return frozenset(found)


def _names(module: str) -> set[str]:
    return set(vars(sys.modules[module])) if module in sys.modules else set()


def _helpers(module: str) -> Iterator[str]:
    for value in list(vars(sys.modules[module]).values()) if module in sys.modules else ():
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and home.startswith("tests.") and home != "tests.conftest":
            yield home


def mark(items: list[Any]) -> None:
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        homes = {one.func.__module__ for each in fixtures for one in each if one.func.__module__.startswith("tests.")}
        found = set().union(*map(marks_of, {item.module.__name__} | homes - {"tests.conftest"}))
        if any(CLIENTS.search(skip.kwargs.get("reason", "")) for skip in item.iter_markers("skipif")):
            found.add("clients")
        for name in sorted(found):
            item.add_marker(name)

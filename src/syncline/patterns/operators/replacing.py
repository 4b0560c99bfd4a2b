"""Chains of replacements: which ClusterServiceVersion replaces which (``pkg/lib/csv/replace_finder.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.patterns.operators.names import COPIED_FROM


def _named(csv: Obj) -> str:
    """Return the name of the one that it replaces; "" if it replaces none, or itself."""
    name = str(dig(csv, "spec", "replaces", default="") or "")
    return "" if name == name_of(csv) else name


def replaces(csv: Obj, csvs: Mapping[str, Obj]) -> Obj | None:
    return csvs.get(_named(csv))


def replaced_by(csv: Obj, csvs: Mapping[str, Obj]) -> Obj | None:
    name = name_of(csv)
    return next(
        (one for key, one in sorted(csvs.items()) if _named(one) == name and COPIED_FROM not in labels_of(one)), None
    )


def newest(csv: Obj, csvs: Mapping[str, Obj]) -> Obj:
    """Return the end of the chain that begins here; a circle ends where it closes."""
    seen = {name_of(csv)}
    while (following := replaced_by(csv, csvs)) is not None and name_of(following) not in seen:
        seen.add(name_of(following))
        csv = following
    return csv


def replacement_chain(csv: Obj, csvs: Mapping[str, Obj]) -> frozenset[str]:
    """Return the names of its chain in both directions, its own among them."""
    chain, current = {name_of(csv)}, csv
    while (following := replaced_by(current, csvs)) is not None and name_of(following) not in chain:
        chain.add(name_of(following))
        current = following
    current = csv
    while (previous := replaces(current, csvs)) is not None and name_of(previous) not in chain:
        chain.add(name_of(previous))
        current = previous
    return frozenset(chain)

"""The deletion guard of a set: whether its deletions need a confirmation, and what to say about them; pure.

A generator that succeeds with few rows, and a template that renames everything, both delete Applications with all their
objects. The guard is that of Applications, on by default. A rename is recognized by equal sources and destinations;
then the new Applications wait too, since two Applications would work on the same objects (decisions/0021).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from syncline.appset.generation import Generated
from syncline.appset.observing.observe import SetObserved
from syncline.appset.writing.applications import MARK
from syncline.argo.guard import CONFIRM, Guarded, guarded
from syncline.argo.typed import normalized_spec
from syncline.kube.objects import Obj, annotations_of, dig, name_of, namespace_of, uid_of

SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Report:
    """A mass deletion of a set."""

    found: Guarded
    names: tuple[str, ...]
    """The Applications that would be deleted."""
    before: int
    rows: Mapping[str, int]
    """Rows by generator element."""
    rows_before: Mapping[str, int]
    """The same when the set was last in order; empty: not known."""
    renamed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """New names by old ones."""
    naming: str = ""
    """The field of the set that makes the names."""

    @property
    def confirmed(self) -> bool:
        return self.found.confirmed

    @property
    def message(self) -> str:
        shown = ", ".join(self.names[:SHOWN]) + (", ..." if len(self.names) > SHOWN else "")
        rows = ", ".join(
            f"{origin} makes {count}" + (f" (before {self.rows_before[origin]})" if origin in self.rows_before else "")
            for origin, count in self.rows.items()
        )
        head = (
            f"{self.found.going} of {self.before} Applications would be deleted ({shown}): "
            f"before there were rows for {self.before}, now {rows}"
        )
        if self.renamed:
            old, new = next(iter(self.renamed.items()))
            head += (
                f"; {len(self.renamed)} of them would be created again under other names ({old} as {new}), because "
                f"{self.naming} makes other names: their objects would be deleted and created again"
            )
        return f"{head}; {self.found.advice}"


def guard_deletions(
    observed: SetObserved, generated: Generated, going: Sequence[Obj], coming: Sequence[Obj]
) -> Report | None:
    """Return the mass deletion, if it is one. ``going``: live Applications that no row makes; ``coming``: new ones."""
    appset = observed.obj
    current = observed.current
    confirmation = annotations_of(appset).get(CONFIRM)
    marked = [app for app in going if confirmation and annotations_of(app).get(MARK) == confirmation]
    identities = [f"{namespace_of(app)}/{name_of(app)}/{uid_of(app)}" for app in going]
    found = guarded(appset, identities, len(current))
    if found is None:
        return None
    if len(marked) == len(going):
        found = replace(found, confirmed=True, digest=str(confirmation))
    rows = Counter(dict.fromkeys(origins_of(appset), 0))
    rows.update(made.row.origin for made in generated.made)
    renamed = renames(going, coming)
    return Report(
        found,
        tuple(sorted(map(name_of, going))),
        len(current),
        MappingProxyType(dict(rows)),
        observed.rows_before,
        MappingProxyType(renamed),
        _naming(appset) if renamed else "",
    )


def origins_of(appset: Obj) -> list[str]:
    """Return the generator elements of a set, as rows name them."""
    elements = dig(appset, "spec", "generators", default=[]) or []
    return [
        f"spec.generators[{index}].{kind}"
        for index, element in enumerate(elements)
        if isinstance(element, dict)
        for kind in element
        if kind != "selector"
    ]


def renames(going: Sequence[Obj], coming: Sequence[Obj]) -> dict[str, str]:
    """Return new names by old ones: pairs with the same sources and destination. Ambiguous ones are paired by order."""
    places: dict[str, list[str]] = {}
    for app in sorted(coming, key=name_of):
        places.setdefault(_place(app), []).append(name_of(app))
    pairs: dict[str, str] = {}
    for app in sorted(going, key=name_of):
        new = places.get(_place(app))
        if new:
            pairs[name_of(app)] = new.pop(0)
    return pairs


def _place(app: Obj) -> str:
    spec = normalized_spec(app.get("spec") or {})
    return json.dumps([spec.get(key) for key in ("source", "sources", "sourceHydrator", "destination")], sort_keys=True)


def _naming(appset: Obj) -> str:
    """Return the field that makes the names: a patch, a generator's own template, or the template of the set."""
    if "name:" in str(dig(appset, "spec", "templatePatch", default="") or ""):
        return "spec.template.metadata.name or spec.templatePatch"
    elements = dig(appset, "spec", "generators", default=[]) or []
    for index, element in enumerate(elements):
        for kind, fields in element.items() if isinstance(element, dict) else ():
            if dig(fields, "template", "metadata", "name"):
                return f"spec.generators[{index}].{kind}.template.metadata.name"
    return f"spec.template.metadata.name ({dig(appset, 'spec', 'template', 'metadata', 'name')})"

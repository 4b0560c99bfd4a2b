"""``clusterGroup.sharedValueFiles`` of a pattern, which its operator templates itself; pure.

It differs from the chart: files win over parameters, a text that fails gives an empty entry, a relative name gets a
slash. Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``argo.go`` and ``values.go``; Helm ``coalesce.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.printing import expanded, floats
from syncline.kube.objects import Obj, copied
from syncline.kube.yaml.loading import load_all
from syncline.patterns.installing.checkout import Checkout, NotAFile

MAX_FILES = 200
"""Limit of shared value files of one group."""


class FilesRefused(ValueError):
    """The shared value files cannot be read; the Application is made without them."""


def shared_files(
    checkout: Checkout, names: Sequence[str], parameters: Iterable[tuple[str, str]], prefix: str
) -> list[str]:
    """Return the shared value files with ``prefix``. ``names``: value files from the root, later ones win;
    ``parameters``: names with dots, and values. Raises :class:`FilesRefused`."""
    files = [values for values in (_read(checkout, name) for name in names) if values is not None]
    merged: Obj = {}
    for one in copied(files):
        merged = coalesced(one, merged)
    group = merged.get("clusterGroup")
    if group is not None and not isinstance(group, dict):
        raise FilesRefused(f"clusterGroup: found {type(group).__name__}, must be a mapping")
    listed = (group or {}).get("sharedValueFiles")
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise FilesRefused(f"could not make a list out of sharedValueFiles: {listed}")
    if len(listed) > MAX_FILES:
        raise FilesRefused(f"clusterGroup.sharedValueFiles: found {len(listed)} files; at most {MAX_FILES}")
    given = _nested(parameters)
    found: list[str] = []
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise FilesRefused(f"type assertion failed at index {number}: Not a string")
        found.append(_expanded(text, copied(files), copied(given), prefix))
    return found


def coalesced(over: Obj, under: Obj) -> Obj:
    """Lay ``over`` on ``under``, in place, and return it: a null takes away what is under it, and goes."""
    there = {key for key, value in under.items() if value is not None}
    for key, value in over.items():
        if value is None:
            under[key] = None
    for key, value in under.items():
        if key not in over:
            over[key] = value
        elif over[key] is None and key in there:
            del over[key]
        elif isinstance(over[key], dict) and isinstance(value, dict):
            coalesced(over[key], value)
    return over


def _read(checkout: Checkout, name: str) -> Obj | None:
    """Return the values of a file; None: there is none."""
    try:
        content = checkout.read(name)
    except NotAFile as error:
        raise FilesRefused(f"could not fetch value files: {error}") from None
    if content is None:
        return None
    loaded = load_all(content, file=name, by_lines=False)
    value = next((document.value for document in loaded.documents), None)
    if loaded.report.errors or not isinstance(value, dict | None):
        why = loaded.report.errors[0] if loaded.report.errors else f"found {type(value).__name__}, must be a mapping"
        raise FilesRefused(f"could not fetch value files: {name}: {why}")
    made: Obj = floats(value or {})
    return made


def _nested(parameters: Iterable[tuple[str, str]]) -> Obj:
    made: Obj = {}
    for name, value in parameters:
        *path, last = name.split(".")
        place = made
        for key in path:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise FilesRefused(f"parameter {name}: {key} is a value of another parameter, not a group of them")
        place[last] = value
    return made


def _expanded(text: str, files: list[Obj], given: Obj, prefix: str) -> str:
    """Return a name as its template says, with ``prefix``; empty if the template fails."""
    values: Any = given
    for one in files:
        values = coalesced(one, values)
    values = coalesced(values, given)
    try:
        made = expanded(text, values, "sharedValueFiles", "sharedValueFiles")
    except RenderFailed:
        return ""
    return f"{prefix}{made}" if made.startswith("/") else f"{prefix}/{made}"

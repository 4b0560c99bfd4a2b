"""Whether an object of the cluster is as a template says: :func:`compare`; pure.

Lists are compared without regard to their order, a quantity by its amount, a missing value as the zero of its type;
what a template does not name is kept (``musthave``) or must not be there (``mustonlyhave``). The rules are those of
upstream's config-policy-controller; whether a difference counts is asked of the API by a dry run.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.gotemplate.values import go_type
from syncline.kube.objects import Obj, annotations_of, copied, name_of
from syncline.kube.text.durations import quoted
from syncline.kube.text.quantity import QuantityError, parse_quantity
from syncline.patterns.policies.cluster.reading import TooMany

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SCC: Final = "openshift.io/sa.scc."
"""Annotations that OpenShift puts on Namespaces."""
MOST_PAIRS: Final = 250_000
"""Pairs of list items that one comparison looks at: each item of an object with each of its template."""
_OF_SERVICE_ACCOUNTS: Final = ("secrets", "imagePullSecrets")
"""What Kubernetes itself puts on ServiceAccounts."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """``merged``: the live object as it should be; ``differs``: that is not the live one; ``lacking``: values are
    missing that equal the zero of their type; ``status``: ``status`` is not as the template says; ``error``: why they
    cannot be compared."""

    merged: Obj = field(repr=False)
    differs: bool = False
    lacking: bool = False
    status: bool = False
    error: str = ""


@dataclass(slots=True)
class _Pairs:
    """How many pairs may still be looked at."""

    left: int = MOST_PAIRS

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            text = "its lists are too long to be compared with those of the template"
            raise TooMany(f"{text}: more than {MOST_PAIRS} pairs of items; name fewer items in the template")


def compare(wanted: Obj, live: Obj, only: bool, metadata_only: bool) -> Comparison:
    """Compare all fields of ``wanted``. ``only``, ``metadata_only``: nothing else may be there (in metadata)."""
    merged, plain, pairs = copied(live), bare(live), _Pairs()
    differs = lacking = status = False
    for key, value in wanted.items():
        if key in ("apiVersion", "kind"):
            continue
        alone = metadata_only if key == "metadata" else only
        try:
            found = _compare_key(key, value, wanted, plain, alone, pairs)
        except TooMany as long:
            return Comparison(merged, differs=True, lacking=lacking, status=status, error=str(long))
        lacking |= found.lacking
        if found.error:
            return Comparison(merged, differs=True, lacking=lacking, status=status, error=found.error)
        if key == "metadata":
            if error := _set_metadata(merged, found.value):
                return Comparison(merged, differs=True, lacking=lacking, status=status, error=error)
        else:
            merged[key] = found.value
        if not found.same:
            status, differs = (True, differs) if key == "status" else (status, True)
    for key in _surplus(wanted, merged) if only else ():
        del merged[key]
        differs = True
    return Comparison(merged, differs, lacking, status)


def _surplus(wanted: Obj, live: Obj) -> list[str]:
    kept = {"apiVersion", "kind", "metadata", "status", *wanted}
    if live.get("kind") == "ServiceAccount" and live.get("apiVersion") == "v1":
        kept.update(_OF_SERVICE_ACCOUNTS)
    return [key for key in live if key not in kept]


def bare(obj: Obj) -> Obj:
    """Return a copy without what changes by itself: field owners, generation, and the last applied manifest."""
    made: Obj = copied(obj)
    metadata = made.setdefault("metadata", {})
    for key in ("managedFields", "generation"):
        metadata.pop(key, None)
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(LAST_APPLIED, None)
    if not annotations_of(made):
        metadata.pop("annotations", None)
    return made


def matches(wanted: Obj, live: Obj, only: bool) -> bool:
    """Return whether an object is one that a template without a name means: a missing value counts as zero. Raises
    :class:`~.reading.TooMany`."""
    pairs = _Pairs()
    found = (
        _compare_key(key, value, wanted, live, only, pairs, lenient=True)
        for key, value in wanted.items()
        if key not in ("apiVersion", "kind")
    )
    return all(one.same and not one.error for one in found)


# -- one field of the object -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    value: Any
    same: bool = True
    lacking: bool = False
    error: str = ""


def _compare_key(
    key: str, value: Any, wanted: Obj, live: Obj, only: bool, pairs: _Pairs, *, lenient: bool = False
) -> _Found:
    value = _metadata(value) if key == "metadata" else value
    existing, lacking = live.get(key), key not in live
    if isinstance(value, dict | list) and existing is not None and type(existing) is not type(value):
        text = f'Error merging changes into key "{key}": object type of template and existing do not match'
        return _Found(value, lacking=lacking, error=text)
    merged, more = value, False
    if isinstance(value, dict) and isinstance(existing, dict):
        merged, more = (value, False) if only else _merge(value, existing, lenient, pairs)
    elif isinstance(value, list) and isinstance(existing, list):
        merged, more = (value, False) if only else _merge_lists(value, existing, lenient, pairs)
    lacking |= more
    if key == "metadata":
        merged, existing = _comparable(merged, existing, wanted.get("kind") == "Namespace")
    elif key == "stringData" and live.get("kind") == "Secret":
        existing = _decoded(live)
        if existing is None:
            return _Found(merged, lacking=lacking, error=f"Error decoding secret: {name_of(live)}")
    same, more = equivalent(merged, existing, lenient)
    return _Found(merged, same, lacking or more)


def _metadata(value: Any) -> Obj:
    """Return what counts of metadata: labels, and annotations but the last applied manifest."""
    given = value if isinstance(value, dict) else {}
    made: Obj = {key: given[key] for key in ("labels", "annotations") if key in given}
    if isinstance(made.get("annotations"), dict):
        made["annotations"] = {key: one for key, one in made["annotations"].items() if key != LAST_APPLIED}
    return made


def _comparable(merged: Any, live: Any, is_namespace: bool) -> tuple[Obj, Obj]:
    merged, live = _metadata(merged), _metadata(live)
    live = {key: one for key, one in live.items() if key in merged}
    mine, there = merged.get("annotations"), live.get("annotations")
    if is_namespace and isinstance(mine, dict) and isinstance(there, dict):
        kept = {key: one for key, one in there.items() if key.startswith(_SCC) and key not in mine}
        merged = {**merged, "annotations": {**mine, **kept}}
    return merged, live


def _set_metadata(merged: Obj, metadata: Obj) -> str:
    """Set labels and annotations; return why one of them is invalid."""
    for key, what in (("annotations", "annotation"), ("labels", "label")):
        if key not in metadata:
            continue
        values = metadata[key]
        if not isinstance(values, dict):
            kind = go_type(values)
            return f"invalid {what}, error: {sprint(values)} is of the type {kind}, expected map[string]interface {{}}"
        for name, value in values.items():
            if not isinstance(value, str):
                text = f"contains non-string value in the map under key {quoted(name)}: {sprint(value)}"
                return f"invalid {what}, error: {text} is of the type {_number_type(value)}, expected string"
        merged["metadata"][key] = dict(values)
    return ""


def _number_type(value: Any) -> str:
    return "int64" if type(value) is int else go_type(value)


def _decoded(secret: Obj) -> Obj | None:
    try:
        found = (secret.get("data") or {}).items()
        return {key: base64.b64decode(str(one), validate=True).decode("utf-8", "replace") for key, one in found}
    except (binascii.Error, ValueError):
        return None


# -- merging -----------------------------------------------------------------------------------------------------------


def _merge(wanted: Any, live: Any, lenient: bool, pairs: _Pairs) -> tuple[Any, bool]:
    """Return ``wanted`` with what only ``live`` has, and whether ``live`` lacks a key of it."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return wanted, False
        made, lacking = {**live, **wanted}, not wanted.keys() <= live.keys()
        for key in wanted.keys() & live.keys():
            made[key], more = _merge(wanted[key], live[key], lenient, pairs)
            lacking |= more
        return made, lacking
    if isinstance(wanted, list) and isinstance(live, list) and live:
        return _merge_lists(wanted, live, lenient, pairs)
    if wanted is None and isinstance(live, dict):
        return live, False
    return wanted, False


def _merge_lists(wanted: list[Any], live: list[Any], lenient: bool, pairs: _Pairs) -> tuple[list[Any], bool]:
    """Return the list with the items of ``live`` that no item of ``wanted`` stands for. Maps with the same ``name``
    stand for one another; duplicates that are there stay, new ones are not made."""
    counts: dict[str, tuple[Any, int]] = {}
    for item in live:
        text = sprint(item)
        counts[text] = (item, counts[text][1] + 1 if text in counts else 1)
    made, taken, lacking = list(wanted), [False] * len(wanted), False
    added: list[Any] = []
    alike = _scalars(wanted, lenient)
    for text, (item, count) in counts.items():
        found = 0
        places: Sequence[int] = range(len(wanted))
        if alike is not None and not isinstance(item, dict | list | None):
            places = alike.get(text, ())
        pairs.take(len(places))
        for at in places:
            want = wanted[at]
            if taken[at]:
                continue
            candidate, named, missing = want, False, False
            if isinstance(item, dict) and isinstance(want, dict):
                candidate, missing = _merge(want, item, lenient, pairs)
                named = isinstance(item.get("name"), str) and item["name"] != "" and want.get("name") == item["name"]
            same, more = equivalent(candidate, item, lenient)
            if named or same:
                made[at], taken[at], found = candidate, True, found + 1
                lacking |= missing or more
                if found == count:
                    break
        added += [item] * (count - found)
    return made + added, lacking


def _scalars(wanted: list[Any], lenient: bool) -> dict[str, list[int]] | None:
    """Return the places of plain values by their text: only they can equal plain values; None: others can, too."""
    if lenient and None in wanted:
        return None
    found: dict[str, list[int]] = {}
    for at, one in enumerate(wanted):
        if not isinstance(one, dict | list):
            found.setdefault(sprint(one), []).append(at)
    return found


# -- equality ----------------------------------------------------------------------------------------------------------


def equivalent(merged: Any, live: Any, lenient: bool) -> tuple[bool, bool]:
    """Return whether two values count as equal, and whether something in ``live`` is only missing. ``lenient``: a
    missing value equals the zero of its type."""
    if isinstance(merged, dict):
        return _same_fields(merged, live, lenient) if isinstance(live, dict) else (False, False)
    if isinstance(merged, list):
        if not merged and live is None:
            return True, False
        return _same_items(merged, live) if isinstance(live, list) else (False, False)
    if lenient and live is None and merged is not None:
        return _is_zero(merged), True
    if lenient and merged is None and live is not None:
        return _is_zero(live), False
    return sprint(merged) == sprint(live), False


def _is_zero(value: Any) -> bool:
    return value in ("", 0, False) or value in ({}, [])


def _same_fields(merged: Obj, live: Obj, lenient: bool) -> tuple[bool, bool]:
    if len(merged) < len(live):
        return False, False
    lacking = False
    for key, value in merged.items():
        same, more = _same_field(value, live.get(key), key in live, lenient)
        lacking |= more
        if not same:
            return False, lacking
    return True, lacking


def _same_field(value: Any, live: Any, there: bool, lenient: bool) -> tuple[bool, bool]:
    if isinstance(value, dict):
        if isinstance(live, dict):
            return _same_fields(value, live, lenient)
        return lenient and not value, False
    if isinstance(value, list):
        if not isinstance(live, list):
            return not value, False
        return _same_items(value, live)
    if isinstance(value, str):
        return _same_text(value, live, there), False
    if live is None and value is not None:
        return _is_zero(value), True
    return sprint(live) == sprint(value), False


def _same_text(value: str, live: Any, there: bool) -> bool:
    try:
        amount = parse_quantity(value)
    except QuantityError:
        return there and sprint(live) == value
    try:
        return isinstance(live, str) and parse_quantity(live) == amount
    except QuantityError:
        return False


def _same_items(merged: list[Any], live: list[Any]) -> tuple[bool, bool]:
    if len(merged) != len(live):
        return False, False
    lacking = False
    for mine, there in zip(_ordered(merged), _ordered(live), strict=True):
        if isinstance(there, dict):
            same, more = _same_fields(mine, there, True) if isinstance(mine, dict) else (False, False)
            lacking |= more
        else:
            same = sprint(there) == sprint(mine)
        if not same:
            return False, lacking
    return True, lacking


def _ordered(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=_sorted_text)


def _sorted_text(value: Any) -> str:
    """Return a value as text, with its lists in order."""
    if isinstance(value, dict):
        return sprint({key: _sorted_text(one) for key, one in value.items()})
    if isinstance(value, list):
        return sprint(sorted(map(_sorted_text, value)))
    return sprint(value)

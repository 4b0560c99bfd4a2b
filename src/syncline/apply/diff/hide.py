"""Masks the values of Secrets, so that a diff shows which values differ but not the values.

Called by all commands that show manifests, live objects or differences, and for logs. Pure. Rules: gitops-engine
``pkg/diff`` ``HideSecretData``: equal values of a key get equal masks, each further value one that is four characters
longer.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from syncline.apply.diff.normalize import fold_string_data
from syncline.apply.last_applied import LAST_APPLIED
from syncline.kube.objects import Obj, annotations_of, meta
from syncline.kube.secretvalues import PLAIN_FIELDS, is_secret

MASK = "+" * 8
STEP = "+" * 4


class _Masks:
    """The masks of one key's values, in order of appearance."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def of(self, value: Any) -> str:
        """Return the mask of a value. Null equals the empty text; values of other types differ by type."""
        known = value or "" if isinstance(value, str | None) else f"{type(value).__name__} {json.dumps(value)}"
        return self._values.setdefault(known, MASK + STEP * len(self._values))


def hide_secret(
    target: Obj | None, live: Obj | None, hidden_annotations: Collection[str] = ()
) -> tuple[Obj | None, Obj | None]:
    """Mask data and annotations of both, also inside the last-applied annotation; an unreadable one is masked as a
    whole."""
    objects = [None if obj is None else _folded(obj) for obj in (target, live)]
    notes = [None if obj is None else _note(obj) for obj in objects]
    data: dict[str, _Masks] = {}
    annotations: dict[str, _Masks] = {}
    shown = [_masked(obj, data, annotations, hidden_annotations) for obj in objects]
    applied = [
        _masked(_folded(note), data, annotations, hidden_annotations) if isinstance(note, dict) else None
        for note in notes
    ]
    if LAST_APPLIED in hidden_annotations:
        applied = [None, None]
    first, second = (_with_note(obj, note, inner) for obj, note, inner in zip(shown, notes, applied, strict=True))
    return first, second


def _is_misplaced(key: str, value: Any) -> bool:
    return value not in (None, "", [], {}) and not (key == "data" and isinstance(value, dict))


def _folded(obj: Obj) -> Obj:
    return fold_string_data(obj) if is_secret(obj) else obj


def _note(obj: Obj) -> Any:
    """Return the last applied manifest; None without one, the text if it is not an object with a kind."""
    text = annotations_of(obj).get(LAST_APPLIED)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) and found.get("kind") else text


def _masked(
    obj: Obj | None, data: dict[str, _Masks], annotations: dict[str, _Masks], hidden: Collection[str]
) -> Obj | None:
    if obj is None:
        return None
    made = dict(obj)
    if isinstance(obj.get("data"), dict):
        made["data"] = {key: data.setdefault(key, _Masks()).of(value) for key, value in sorted(obj["data"].items())}
    if is_secret(obj):
        # A misspelt field or one of the wrong type may hold the values too.
        made |= {key: MASK for key, value in made.items() if key not in PLAIN_FIELDS and _is_misplaced(key, value)}
    found = meta(obj).get("annotations")
    if isinstance(found, dict) and any(key in found for key in hidden):
        shown = {
            key: annotations.setdefault(key, _Masks()).of(value) if key in hidden else value
            for key, value in found.items()
        }
        made["metadata"] = obj["metadata"] | {"annotations": shown}
    return made


def _with_note(obj: Obj | None, note: Any, masked: Obj | None) -> Obj | None:
    if obj is None or note is None:
        return obj
    text = MASK if masked is None else json.dumps(masked, sort_keys=True, separators=(",", ":"))
    return obj | {"metadata": obj["metadata"] | {"annotations": {**meta(obj)["annotations"], LAST_APPLIED: text}}}

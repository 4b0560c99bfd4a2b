"""Which namespaces a ConfigurationPolicy concerns: :func:`selected_namespaces`; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from syncline.kube.objects import Obj, is_terminating, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.kube.text.glob import GlobError, path_match


class SelectionError(ValueError):
    """Why a selector selects nothing; the text is upstream's."""


def is_empty(selector: Mapping[str, Any]) -> bool:
    """Return whether nothing is selected by it, whatever it excludes."""
    return not any(selector.get(key) for key in ("include", "matchLabels", "matchExpressions")) and not _given(selector)


def _given(selector: Mapping[str, Any]) -> bool:
    return "matchLabels" in selector or "matchExpressions" in selector


def selected_namespaces(namespaces: Iterable[Obj], selector: Mapping[str, Any]) -> list[str]:
    """Return the names of those that the selector of a policy selects, in order. Raises :class:`SelectionError`."""
    if is_empty(selector):
        return []
    labels = None
    if _given(selector):
        try:
            labels = label_selector_from({key: selector.get(key) for key in ("matchLabels", "matchExpressions")})
        except SelectorError as error:
            raise SelectionError(f"error parsing namespace LabelSelector: {error}") from error
    ending = selector.get("terminatingInclusion") == "IfMatch"
    found = [
        name_of(one)
        for one in namespaces
        if (ending or not is_terminating(one)) and (labels is None or labels.matches(labels_of(one)))
    ]
    include, exclude = selector.get("include") or (), selector.get("exclude") or ()
    kept = (one for one in found if not include or _any(include, one, "include"))
    return sorted(one for one in kept if not _any(exclude, one, "exclude"))


def _any(patterns: Iterable[str], name: str, what: str) -> bool:
    for pattern in patterns:
        try:
            if path_match(pattern, name):
                return True
        except GlobError as error:
            raise SelectionError(f"error parsing '{what}' pattern '{pattern}': syntax error in pattern") from error
    return False

"""Fills the second child of a matrix with a row of the first: :class:`Interpolation`, parsed once.

Source of the rules: Argo CD ``RenderGeneratorParams``. ``values`` may also use parameters of the child itself, so a
text that reads a missing key stays as it is there. The selector for rows is filled, but counts as it was.
"""

from __future__ import annotations

from typing import Any

from syncline.appset.generators.context import Row
from syncline.appset.generators.element import COMBINING
from syncline.appset.generators.errors import GenerationError
from syncline.appset.rendering.application import RAW_FIELD
from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.functions import writes
from syncline.appset.rendering.goforms import GoError, copied, filled_raw, texts_of
from syncline.appset.rendering.text import Params, Renderer
from syncline.appset.rendering.tree import Broken, Text, Tree, entries, items, planted, planted_text, wrapped
from syncline.kube.objects import Obj
from syncline.kube.schema.fieldcauses import quoted

_WITH_VALUES = frozenset({"clusters", "git", "scmProvider", "clusterDecisionResource", "pullRequest", "plugin"})
_RAW = frozenset({("list", "elements"), ("input", "parameters")})
"""Fields of any JSON, whose errors have a prefix: the items of the first, the entries of the second."""
_NO_PATHS: Obj = {"pathsExist": [], "pathsDoNotExist": []}
_NO_LABELS: Obj = {"matchLabels": {}, "matchExpressions": []}


class Interpolation:
    """An element with its texts parsed."""

    __slots__ = ("_element", "_kept", "_tree", "_writes")

    def __init__(self, element: Obj, renderer: Renderer) -> None:
        self._element = element
        self._kept = {key: item for key, item in element.items() if key == "selector"}
        try:
            self._tree = _planted(element, "", renderer)
        except GoError as error:
            raise GenerationError(f"failed to replace parameters in generator: {RAW_FIELD}{error}") from None
        self._writes = renderer.go and any(map(writes, texts_of(element)))

    @property
    def varies(self) -> bool:
        """Whether any text has tags, so that rows of the first child give different elements."""
        return isinstance(self._tree, Tree)

    def fill(self, row: Row) -> Obj:
        """Return the element for a row; raises :class:`GenerationError`."""
        if not row:
            return self._element
        try:
            made: Obj = self._tree
            if isinstance(self._tree, Tree):
                made = self._tree.fill(copied(row) if self._writes else row)
        except RenderError as error:
            raise GenerationError(f"failed to replace parameters in generator: {error}") from None
        return {**_with_empty(made), **self._kept}


def _with_empty(element: Obj) -> Obj:
    """Give lists and maps that are absent an empty value, as filling does upstream, where that has a meaning: filters
    of repositories become filters of branches, and a resource chosen by name has a selector, too: an error."""
    made = dict(element)
    for kind in COMBINING:
        combined = made.get(kind)
        if isinstance(combined, dict) and isinstance(combined.get("generators"), list):
            children = [_with_empty(one) if isinstance(one, dict) else one for one in combined["generators"]]
            made[kind] = {**combined, "generators": children}
    provider, decision = made.get("scmProvider"), made.get("clusterDecisionResource")
    if isinstance(provider, dict) and isinstance(provider.get("filters"), list):
        filters = [{**_NO_PATHS, **one} if isinstance(one, dict) else one for one in provider["filters"]]
        made["scmProvider"] = {**provider, "filters": filters}
    if isinstance(decision, dict):
        selector = decision.get("labelSelector")
        filled = {**_NO_LABELS, **selector} if isinstance(selector, dict) else _NO_LABELS
        made["clusterDecisionResource"] = {**decision, "labelSelector": filled}
    return made


def _planted(value: Any, field: str, renderer: Renderer) -> Any:
    if isinstance(value, list):
        return items([_planted(item, field, renderer) for item in value])
    if not isinstance(value, dict):
        return planted(value, renderer)
    pairs = []
    for key, item in value.items():
        if (field, key) in _RAW:
            made = _raw(item, renderer)
        elif field == "generators" and key in COMBINING:
            made = _filled(item, renderer)
        elif key == "values" and field in _WITH_VALUES and isinstance(item, dict):
            made = entries([(name, _value(name, text, renderer)) for name, text in item.items()])
        else:
            made = _planted(item, key, renderer)
        pairs.append((planted_text(key, renderer), made))
    return entries(pairs)


def _raw(value: Any, renderer: Renderer) -> Any:
    if isinstance(value, list):
        return items([_filled(item, renderer) for item in value])
    if isinstance(value, dict):
        return entries([(planted_text(key, renderer), _filled(item, renderer)) for key, item in value.items()])
    return value


def _filled(value: Any, renderer: Renderer) -> Any:
    return wrapped(planted(filled_raw(value), renderer), RAW_FIELD)


def _value(name: str, text: Any, renderer: Renderer) -> Any:
    if not isinstance(text, str):
        return text
    made = planted_text(text, renderer.strict() if renderer.go else renderer)
    if isinstance(made, Broken):
        return wrapped(made, f"failed to pre-resolve Values key {quoted(name)}: ")
    return _Value(name, text, made) if isinstance(made, Text) else made


class _Value(Tree):
    """One of ``values``: stays for the child where the row lacks a key."""

    __slots__ = ("_name", "_text", "_tree")

    def __init__(self, name: str, text: str, tree: Tree) -> None:
        self._name, self._text, self._tree = name, text, tree

    def fill(self, params: Params) -> str:
        try:
            made: str = self._tree.fill(params)
        except RenderError as error:
            if error.missing_key:
                return self._text
            raise RenderError(f"failed to pre-resolve Values key {quoted(self._name)}: {error}") from None
        return made

"""Reads fields of generator elements: :class:`Element`. Wrong types are an error with the path, never a crash.

The API server has checked a stored set against its definition; files and nested elements have not been.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.appset.generators.errors import GenerationError
from syncline.kube.objects import Obj


class Element:
    """A map of a set with its path for people (``spec.generators[0].git``)."""

    __slots__ = ("path", "raw")

    def __init__(self, raw: Any, path: str) -> None:
        if raw is not None and not isinstance(raw, dict):
            raise GenerationError(f"{path} must be a map, but is {_shown(raw)}")
        self.raw: Obj = raw or {}
        self.path = path

    def text(self, key: str) -> str:
        """Return a text; empty if absent."""
        found = self._of(key, str, "a text")
        return "" if found is None else str(found)

    def optional(self, key: str) -> str | None:
        """Return a text, None if absent."""
        found = self._of(key, str, "a text")
        return None if found is None else str(found)

    def flag(self, key: str) -> bool:
        return self._of(key, bool, "true or false") is True

    def seconds(self, key: str, default: float) -> float:
        """Return a number of seconds; ``default`` if absent, 0 (never) for a negative one."""
        found = self.raw.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(key, "a whole number of seconds")
        return max(float(found), 0.0)

    def texts(self, key: str) -> list[str]:
        return [self._item(key, index, item) for index, item in enumerate(self._of(key, list, "a list") or ())]

    def text_map(self, key: str) -> Mapping[str, str]:
        found = self._of(key, dict, "a map") or {}
        for name, item in found.items():
            if item is not None and not isinstance(item, str):
                raise self._wrong(f"{key}.{name}", "a text", item)
        return {name: item or "" for name, item in found.items()}

    def selector(self, key: str) -> Obj | None:
        """Return a LabelSelector whose fields have the right types, None if absent; empty fields are absent."""
        given = self.below(key)
        if given is None:
            return None
        terms = [
            {"key": one.text("key"), "operator": one.text("operator"), "values": one.texts("values")}
            for one in given.elements("matchExpressions")
        ]
        return {"matchLabels": dict(given.text_map("matchLabels")), "matchExpressions": terms}

    def below(self, key: str) -> Element | None:
        """Return the map under ``key``, None if absent."""
        found = self.raw.get(key)
        return None if found is None else Element(found, f"{self.path}.{key}")

    def items(self, key: str) -> list[Any]:
        return list(self._of(key, list, "a list") or ())

    def elements(self, key: str) -> list[Element]:
        return [Element(item, f"{self.path}.{key}[{index}]") for index, item in enumerate(self.items(key))]

    def _item(self, key: str, index: int, item: Any) -> str:
        if not isinstance(item, str):
            raise self._wrong(f"{key}[{index}]", "a text", item)
        return item

    def _of(self, key: str, kind: type, what: str) -> Any:
        found = self.raw.get(key)
        if found is not None and not isinstance(found, kind):
            raise self._wrong(key, what)
        return found

    def _wrong(self, key: str, what: str, found: Any = None) -> GenerationError:
        given = self.raw.get(key) if found is None else found
        return GenerationError(f"{self.path}.{key} must be {what}, but is {_shown(given)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

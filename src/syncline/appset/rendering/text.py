"""Renders one text with one row, in either engine of upstream: :class:`Renderer`.

Parsed templates are remembered, bounded in number. Source of the rules: Argo CD ``applicationset/utils`` ``Replace``;
``fasttemplate`` 1.2.2 for the plain mode, Go's ``text/template`` with sprig for the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.functions import FUNCTIONS, changes, changing_functions
from syncline.appset.rendering.goforms import GO_SPACE
from syncline.kube.gotemplate.functions import Function
from syncline.kube.gotemplate.template import Limits, MissingKey, Template, TemplateError, parse
from syncline.kube.schema.fieldcauses import quoted

Params: TypeAlias = Mapping[str, Any]
Fill: TypeAlias = Callable[[Params], str]
"""Renders one text for a row. Raises :class:`RenderError`."""

MAX_TEMPLATES = 4_096
"""The most parsed templates that are remembered."""
MAX_REMEMBERED = 65_536
"""The longest template that is remembered, in characters."""
LIMITS = Limits()

_TAGGED = re.compile(r"\{\{[^\n]*\}\}")
_OPTIONS = {
    "missingkey=default": MissingKey.DEFAULT,
    "missingkey=invalid": MissingKey.INVALID,
    "missingkey=zero": MissingKey.ZERO,
    "missingkey=error": MissingKey.ERROR,
}


class Renderer:
    """One engine with its options, for all texts of a set."""

    __slots__ = ("_changing", "_changing_functions", "_missing_key", "_wrong_option", "go", "options")

    def __init__(
        self, *, go: bool, options: Sequence[str] = (), changing: Callable[[], Mapping[str, Function]] | None = None
    ) -> None:
        """``go``: Go templates with ``goTemplateOptions``; else fasttemplate. A wrong option fails the first text.

        ``changing`` gives the functions with those of time and chance, which stay the same for this renderer.
        """
        self.go = go
        self.options = tuple(options)
        self._changing = changing or partial(changing_functions, None, "")
        self._changing_functions: Mapping[str, Function] | None = None
        wrong = [one for one in options if one not in _OPTIONS]
        self._wrong_option = wrong[0] if go and wrong else ""
        known = [_OPTIONS[one] for one in options if one in _OPTIONS]
        self._missing_key = known[-1] if known else MissingKey.DEFAULT

    def strict(self) -> Renderer:
        """Return the same engine with ``missingkey=error``."""
        wrong = [self._wrong_option] if self._wrong_option else []
        return Renderer(go=self.go, options=[*wrong, "missingkey=error"], changing=self._functions)

    def template(self, text: str) -> Fill | None:
        """Return what renders ``text``; None where it stays as it is for every row.

        Raises :class:`RenderError` for a text that cannot be parsed, and for a wrong option.
        """
        if self._wrong_option:
            raise RenderError(
                f"unrecognized option: {self._wrong_option}; spec.goTemplateOptions may have {', '.join(_OPTIONS)}"
            )
        if "{{" not in text:
            return None
        found: Fill | str | None
        if self.go and changes(text):
            found = _parsed_go(text, self._missing_key, self._functions())
        else:
            parsed = _parsed if len(text) <= MAX_REMEMBERED else _parsed.__wrapped__
            found = parsed(text, self._missing_key if self.go else None)
        if isinstance(found, str):
            raise RenderError(found)
        return found

    def _functions(self) -> Mapping[str, Function]:
        if self._changing_functions is None:
            self._changing_functions = self._changing()
        return self._changing_functions

    def replace(self, text: str, params: Params) -> str:
        """Render ``text``; raises :class:`RenderError`."""
        fill = self.template(text)
        return text if fill is None else fill(params)


@lru_cache(MAX_TEMPLATES)
def _parsed(text: str, missing_key: MissingKey | None) -> Fill | str | None:
    """Return what renders a text, None if it has no tags, or why it cannot be parsed."""
    return _fast(text) if missing_key is None else _parsed_go(text, missing_key, FUNCTIONS)


def _parsed_go(text: str, missing_key: MissingKey, functions: Mapping[str, Function]) -> Fill | str:
    try:
        template = parse("base", text, functions, missing_key=missing_key, limits=LIMITS)
    except TemplateError as error:
        return f"failed to parse template {text}: {error}"
    return _going(template, text)


def _going(template: Template, text: str) -> Fill:
    def fill(params: Params) -> str:
        try:
            return template.render(params)
        except TemplateError as error:
            missing = "map has no entry for key" in str(error) or "can't evaluate field" in str(error)
            raise RenderError(f"failed to execute go template {text}: {error}", missing_key=missing) from None

    return fill


def _fast(text: str) -> Fill | str | None:
    """Parse for fasttemplate: tags are only looked for if one stands complete on a line."""
    if _TAGGED.search(text) is None:
        return None
    head, *tags = text.split("{{")
    # A "{{" within a tag belongs to the tag, which ends at the next "}}".
    pieces: list[tuple[str, str, str]] = []
    open_tag: str | None = None
    for piece in tags:
        inside = piece if open_tag is None else f"{open_tag}{{{{{piece}"
        tag, found, after = inside.partition("}}")
        if not found:
            open_tag = inside
            continue
        pieces.append((tag.strip(GO_SPACE), tag, after))
        open_tag = None
    if open_tag is not None:
        where = f"in the template={quoted(text)} starting from {quoted(open_tag)}"
        return f'invalid template: Cannot find end tag="}}}}" {where}'

    def fill(params: Params) -> str:
        made = [head]
        for name, tag, after in pieces:
            value = params.get(name) if name else None
            made.append(value if isinstance(value, str) else f"{{{{{tag}}}}}")
            made.append(after)
        return "".join(made)

    return fill

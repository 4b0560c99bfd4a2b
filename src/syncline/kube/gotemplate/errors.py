"""The error of templates."""

from __future__ import annotations

from typing import Final

from syncline.kube.gotemplate.values import characters

_MOST: Final = 16_384


class TemplateError(Exception):
    """Why a template cannot be parsed or rendered, in Go's words: ``template: NAME:LINE: ...`` of a parse,
    ``template: NAME:LINE:COLUMN: executing "NAME" at <...>: ...`` of a rendering."""

    def __init__(self, text: str) -> None:
        """Cut the middle of a text that names a very long node, which is as long as who wrote the template likes; bytes
        that are no characters become U+FFFD."""
        if len(text) > _MOST:
            text = f"{text[: _MOST // 2]} … {text[-_MOST // 2 :]}"
        super().__init__(characters(text))

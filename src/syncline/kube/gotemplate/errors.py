"""The error of templates."""

from __future__ import annotations


class TemplateError(Exception):
    """Why a template cannot be parsed or rendered, in Go's words: ``template: NAME:LINE: ...`` of a parse,
    ``template: NAME:LINE:COLUMN: executing "NAME" at <...>: ...`` of a rendering."""

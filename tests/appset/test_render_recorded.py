"""One text with one row, in either engine, as recorded from Argo CD."""

from __future__ import annotations

import pytest
from tests.appset.recordings import cases, judge, same_error
from tests.recorded import Case

from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.goforms import decoded
from syncline.appset.rendering.text import Renderer


@pytest.mark.parametrize("case", cases("render"), ids=lambda case: case["id"])
def test_a_text_is_rendered_as_recorded(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    renderer = Renderer(go=given.get("goTemplate", False), options=given.get("goTemplateOptions") or ())
    text = error = None
    try:
        text = renderer.replace(given["text"], decoded(given["params"]))
    except RenderError as found:
        error = str(found)
    if "panic" in expect:
        agrees = error is not None
    else:
        agrees = text == expect.get("text") and same_error(expect.get("error"), error)
    judge("render", case, agrees, {"text": text, "error": error})

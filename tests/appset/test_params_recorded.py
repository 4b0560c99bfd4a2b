"""Rows of one generator element, as recorded from Argo CD."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.appset.answers import ROUNDS, World, facts_of
from tests.appset.recordings import cases, judge, same_error, same_sets
from tests.recorded import Case

from syncline.appset.generators.combining import transformed
from syncline.appset.generators.context import Context
from syncline.appset.generators.element import intervals, selector_of
from syncline.appset.generators.errors import GenerationError, Unanswered
from syncline.appset.generators.interpolating import Interpolation
from syncline.appset.generators.reading import Element
from syncline.appset.questions import Facts, PluginQuestion
from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.goforms import decoded, plain


def _appset(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {
            "goTemplate": given.get("goTemplate", False),
            "goTemplateOptions": given.get("goTemplateOptions") or [],
            "template": {"spec": {"project": given.get("project", "default")}},
        },
    }


def rows_of(given: Mapping[str, Any], facts: Facts) -> tuple[list[Any], str, list[float]]:
    """The rows or the error of the element, and its intervals."""
    context = Context(_appset(given), facts)
    element = given["generator"]
    seconds = intervals(Element(element, "generator"), context)
    try:
        if given.get("outerParams"):
            selector_of(Element(element, "generator"))
            element = Interpolation(element, context.renderer).fill(decoded(given["outerParams"]))
        found = transformed(Element(element, "generator"), context)
    except (GenerationError, RenderError) as error:
        return [], str(error), seconds
    error = next((one.error for one in found if one.error), "")
    return [plain(row) for one in found for row in one.rows], error, seconds


def answered(given: Mapping[str, Any]) -> tuple[list[Any], str, list[float], World]:
    world, facts = World(given), facts_of(given)
    for _ in range(ROUNDS):
        try:
            return *rows_of(given, facts), world
        except Unanswered:
            context = Context(_appset(given), facts)
            questions = _missing(given, context)
            facts = replace(facts, answers={**facts.answers, **{one: world.answer(one) for one in questions}})
    raise AssertionError("still missing")


def _missing(given: Mapping[str, Any], context: Context) -> list[Any]:
    try:
        element = given["generator"]
        if given.get("outerParams"):
            element = Interpolation(element, context.renderer).fill(decoded(given["outerParams"]))
        transformed(Element(element, "generator"), context)
    except Unanswered:
        pass
    return [*context.missing]


@pytest.mark.parametrize("case", cases("params"), ids=lambda case: case["id"])
def test_an_element_gives_the_recorded_rows(case: Case) -> None:
    expect = case["expect"]
    rows, error, seconds, world = answered(case["input"])
    agrees = same_error(expect.get("error"), error) and seconds == expect["requeueAfter"]
    if not expect.get("error"):
        agrees = agrees and same_sets(expect["sets"], rows, unordered=expect.get("unordered", False))
    if "requests" in expect:
        bodies = [json.loads(one.body) for one in world.asked if isinstance(one, PluginQuestion)]
        agrees = agrees and bodies == [one["body"] for one in expect["requests"]]
    judge("params", case, agrees, {"sets": rows, "error": error, "requeueAfter": seconds})

"""How an answer is shown: the verdict first, and nothing of a repository becomes markup."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from syncline.cli.views.rehearsal.documents import html_answer, junit_answer, markdown_answer
from syncline.cli.views.rehearsal.picture import draw_answer
from syncline.cli.views.rehearsal.text import describe_answer, describe_compared
from syncline.rehearsal.answer.answer import Answer, Bar, Breach, Cure, Doing, Outage, Outcome, Wait
from syncline.rehearsal.answer.judging import critical_path, shortening
from syncline.rehearsal.given.durations import GUESSES

HOSTILE = "<script>`@x` | \x1b[31m ]]>"
SVG = "{http://www.w3.org/2000/svg}"
BARS = (
    Bar("app/a", Doing.SYNC, 0, 12, "Succeeded"),
    Bar("app/a Sync wave 0", Doing.WAVE, 0, 12),
    Bar("pool/worker", Doing.POOL, 12, 500, "Updated"),
    Bar("node/w1", Doing.REBOOTS, 13, 253, "done"),
    Bar("node/w2", Doing.WAITS, 12, 253, "for its turn"),
    Bar("node/w2", Doing.REBOOTS, 253, 493, "done"),
)
ANSWER = Answer(
    "a",
    1,
    Outcome.UNSAFE,
    f"Service has none {HOSTILE}",
    "",
    700,
    None,
    None,
    None,
    BARS,
    critical_path(BARS),
    (Wait("pool", "Waits", 5, None, (f"pool waits {HOSTILE}", "node is down"), "look; or wait"),),
    (Outage("Service a/b", 13, 20, 2, 0),),
    (Breach("service-up", f"found {HOSTILE}", 13, "one is up"),),
    ("service-up", "rests"),
    (Cure(f"edit {HOSTILE}", "a.yaml", f"-a\n+{HOSTILE}\n```\n", Outcome.SAFE, "done after 1m0s", 60.0),),
    ("assumed",),
    tuple(GUESSES.values()),
)


def test_the_first_lines_are_the_verdict_and_the_one_thing_to_do() -> None:
    first, second = describe_answer(ANSWER).splitlines()[:2]
    assert first.startswith("UNSAFE   a: Service has none")
    assert second.startswith("do       edit") and second.endswith("rehearsed: safe, done after 1m0s")
    assert "\x1b" not in describe_answer(ANSWER)


def test_the_critical_path_leads_back_from_the_end_and_says_what_would_shorten_it() -> None:
    assert [bar.row for bar in critical_path(BARS)] == ["app/a Sync wave 0", "node/w1", "node/w2"]
    said = "pool worker reboots 2 nodes one after the other; maxUnavailable 2 would save about 4m0s (estimated)"
    assert shortening(BARS, critical_path(BARS)) == said


def test_pictures_and_reports_are_well_formed_whatever_they_show() -> None:
    picture = ElementTree.fromstring(draw_answer(ANSWER))
    rows = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"node/w1", "Service a/b"} <= set(rows)
    suite = ElementTree.fromstring(junit_answer(ANSWER))
    assert suite.attrib["failures"] == "1"
    assert [case.attrib["name"] for case in suite.iter("testcase") if len(case)] == ["service-up"]


def test_what_a_repository_says_is_no_markup_on_pages_and_in_pull_requests() -> None:
    page, summary = html_answer(ANSWER), markdown_answer(ANSWER)
    assert "<script" not in page and "\x1b" not in page
    outside = [line for line in summary.splitlines() if not line.startswith(("+", " "))]
    assert not any("<script" in line.replace("`` ", "`") and "`" not in line for line in outside)
    assert "````diff" in summary


@pytest.mark.parametrize(("outcome", "failures"), [(Outcome.BLOCKED, "2"), (Outcome.SAFE, "1")])
def test_an_end_that_is_not_reached_is_a_failure_of_the_suite(outcome: Outcome, failures: str) -> None:
    suite = ElementTree.fromstring(junit_answer(replace(ANSWER, outcome=outcome)))
    assert suite.attrib["failures"] == failures


def test_two_answers_are_compared_before_the_second() -> None:
    text = describe_compared((replace(ANSWER, outcome=Outcome.SAFE, done_s=60.0), ANSWER), ("main", "fix"))
    assert text.splitlines()[1].split() == ["verdict", "safe", "unsafe"]
    assert text.splitlines()[2].split() == ["done", "+1m0s", "…"]

"""Verdicts and reports about configurations, as ``ignition-validate`` gave them (``conformance/ignition``)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ignition.recordings import judge, raw_input, run_as, same_text

from syncline.ignition.parsing import parse
from syncline.ignition.report import Entry, path_text
from syncline.ignition.spec2.parsing import parse2


def _entry(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {"severity": entry.severity.value, "message": entry.message}
    if entry.path:
        found["path"] = path_text(entry.path)
    if entry.line:
        found |= {"line": entry.line, "column": entry.column}
    return found


@pytest.mark.parametrize("case", run_as("validate", "ignition-validate"), ids=lambda case: case["id"])
def test_a_report_has_upstreams_entries_sentences_and_places(case: dict[str, Any]) -> None:
    expect = case["expect"]
    config, report, error = parse(raw_input(case))
    verdict = "invalid" if config is None else "warnings" if report else "valid"
    got, want = [_entry(entry) for entry in report.entries], expect["report"]
    if expect["text_match"] == "similar":
        for entry in (*got, *want):
            entry.pop("message")
    elif expect["text_match"] == "unordered":
        got.sort(key=_by_path)
        want.sort(key=_by_path)
    agrees = verdict == expect["verdict"] and got == want and error == expect.get("error")
    if not expect.get("printf_quirk"):
        agrees = agrees and same_text(case, str(report), expect["stdout"])
    judge(case, agrees, (verdict, got, error))


@pytest.mark.parametrize("case", run_as("validate", "spec2x-parse"), ids=lambda case: case["id"])
def test_a_report_about_2_x_quotes_the_source_as_upstream_does(case: dict[str, Any]) -> None:
    expect = case["expect"]
    config, report, error = parsed = parse2(raw_input(case))
    verdict = "invalid" if config is None else "warnings" if report else "valid"
    got = [_entry2(entry) for entry in report.entries]
    agrees = verdict == expect["verdict"] and got == expect["report"] and error == expect.get("error")
    judge(case, agrees and parsed.text == expect["text"], (verdict, got, error))


def _entry2(entry: Entry) -> dict[str, Any]:
    found = _entry(entry)
    return found | {"highlight": entry.excerpt} if entry.excerpt else found


def _by_path(entry: dict[str, Any]) -> str:
    return f"{entry.get('path')} {entry['message']}"

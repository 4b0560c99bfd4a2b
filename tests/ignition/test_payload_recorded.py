"""Packed configurations, contents of files, and Accept headers as the Machine Config Operator read them
(``conformance/machineconfig``: filedecode, accept; behaviour 89)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.ignition.recordings import cases, judge

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.ignition.versions.negotiate import NegotiationError, negotiate, parse_accept


@pytest.mark.parametrize("case", cases("machineconfig", "filedecode"), ids=lambda case: case["id"])
def test_the_contents_of_a_file_are_read_as_strictly_as_upstream_does(case: dict[str, Any]) -> None:
    given = case["input"]
    try:
        contents = decode_file_contents(given.get("source"), given.get("compression"))
        got = {"base64": base64.b64encode(contents).decode()}
    except PayloadError as problem:
        got = {"error": str(problem)}
    judge(case, got == case["expect"], got)


@pytest.mark.parametrize("case", cases("machineconfig", "accept"), ids=lambda case: case["id"])
def test_a_client_gets_the_version_that_upstream_would_serve(case: dict[str, Any]) -> None:
    header, expect = case["input"]["accept"], case["expect"]
    parsed = [
        {"type": entry.type, "q": pytest.approx(entry.quality, abs=1e-6)}
        | ({"version": str(entry.version)} if entry.version else {})
        for entry in parse_accept(header)
    ]
    got: dict[str, Any] = {}
    try:
        got["version"] = negotiate(header)
    except NegotiationError as problem:
        got["error"] = str(problem)
    wanted = {key: expect[key] for key in ("version", "error") if key in expect}
    judge(case, parsed == expect["parsed"] and got == wanted, (parsed, got))

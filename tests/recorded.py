"""Recorded conformance cases and scenes: where they are, and what a run says of those that it did not find.

They are too large for the repository. They lie in ``shared/conformance`` and ``shared/scenes`` beside it (beside the
main checkout of a worktree, too), or where ``SYNCLINE_CONFORMANCE`` and ``SYNCLINE_SCENES`` say. A file is read when
the module that has its cases is collected. Known differences are named by the ``known.json`` of a room.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
Case = dict[str, Any]
EMPTY = "got empty parameter set"
"""How pytest begins its reason for a test without cases."""
ABSENT = "no recordings at"


def main_checkout(root: Path) -> Path:
    """The checkout that a worktree belongs to: its ``.git`` is a file that names a folder below the other's."""
    mark = root / ".git"
    if not mark.is_file():
        return root
    named = mark.read_text().removeprefix("gitdir:").strip()
    return next((folder.parent for folder in (root / named).resolve().parents if folder.name == ".git"), root)


def shared(variable: str, name: str, root: Path = ROOT) -> Path:
    """The folder that the variable names, else the first that exists, else where it is expected."""
    if given := os.environ.get(variable):
        return Path(given)
    places = [each.parent / "shared" / name for each in (root, main_checkout(root))]
    return next((place for place in places if place.is_dir()), places[0])


CONFORMANCE = shared("SYNCLINE_CONFORMANCE", "conformance")
SCENES = shared("SYNCLINE_SCENES", "scenes")


def absent(path: Path) -> str:
    """Why a test is skipped that needs this file or folder."""
    which = "SYNCLINE_CONFORMANCE" if path.is_relative_to(CONFORMANCE) else "SYNCLINE_SCENES"
    return f"{ABSENT} {path}: {which} can name another folder"


@cache
def _read(path: Path) -> list[Case]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def cases_of(room: str, kind: str) -> list[Case]:
    """A case for each line; other line separators than the newline may stand in one. None while tests are collected if
    the file is absent, and a test that asks for it is skipped."""
    path = CONFORMANCE / room / f"{kind}.jsonl"
    if path.exists():
        return _read(path)
    if "PYTEST_CURRENT_TEST" in os.environ:
        pytest.skip(absent(path))
    return []


def say_what_is_absent(items: Iterable[pytest.Item]) -> None:
    """Tests without a case say which folder is absent, not that a parameter is empty."""
    for item in items:
        for mark in item.own_markers:
            if mark.name == "skip" and str(mark.kwargs.get("reason", "")).startswith(EMPTY):
                mark.kwargs["reason"] = absent(CONFORMANCE)


@cache
def known(file: Path) -> dict[str, Any]:
    """``known.json``: reasons by the id of a case, or such a table for each kind."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def judge_by(reasons: dict[str, str], case: Case, agrees: bool, got: object) -> None:
    """A case must agree, unless it is known why it does not; then it must really differ."""
    if case["id"] in reasons:
        assert not agrees, f"{case['id']} agrees now: take it off known.json"
        pytest.xfail(reasons[case["id"]])
    assert agrees, f"{case['id']} {case.get('about', '')}: expected {case['expect']}, got {got}"

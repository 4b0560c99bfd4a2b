"""Every numbered behaviour of the two references has a test that names it, or a line in docs/compatibility.md.

``_s045`` in the name of a test is behaviour 45 of the sync reference, ``_a045`` of the application reference; rooms
that know one reference only write ``test_behaviour_74_…`` or ``test_86_…``. A line of the list of behaviours in the
document begins with ``| sync | 46 |`` or ``| application | 57 |``.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "compatibility.md"
SYNC, APPLICATION = range(1, 98), range(1, 91)
TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
MARK = re.compile(r"_([sa])(\d{3})(?=_|$)")
LINE = re.compile(r"^\| (sync|application) \| (\d+) \|", re.MULTILINE)
ALONE = {"sources", "webhooks"}
"""Folders whose tests speak of the application reference without saying so."""


def _tested() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {"sync": set(), "application": set()}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in TEST.findall(path.read_text()):
            for which, number in MARK.findall(name):
                found["sync" if which == "s" else "application"].add(int(number))
            if ALONE & set(path.parts):
                found["application"] |= {int(n) for n in re.findall(r"^test_(?:behaviour_)?(\d{1,2})_", name)}
    return found


def decided_otherwise() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {"sync": set(), "application": set()}
    for which, number in LINE.findall(DOCUMENT.read_text()):
        found[which].add(int(number))
    return found


def test_every_behaviour_of_the_sync_reference_is_tested_or_decided_otherwise() -> None:
    assert sorted(set(SYNC) - _tested()["sync"] - decided_otherwise()["sync"]) == []


def test_every_behaviour_of_the_application_reference_is_tested_or_decided_otherwise() -> None:
    assert sorted(set(APPLICATION) - _tested()["application"] - decided_otherwise()["application"]) == []

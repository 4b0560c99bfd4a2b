"""Beside the real ``ignition-validate`` (Debian: package ignition), where it is installed: verdict, report, places.

Any release serves; versions that it does not know are left out, and three sentences that changed are made equal.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess

import pytest
from tests.ignition.recordings import raw_input, run_as
from tests.ignition.test_ignition_properties import config

from syncline.ignition.parsing import parse
from syncline.ignition.schema import NEWEST, version_text

PROGRAM = shutil.which("ignition-validate")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="ignition-validate is not installed (apt-get install ignition)")


def _theirs(raw: bytes) -> tuple[int, str, str]:
    assert PROGRAM is not None
    done = subprocess.run([PROGRAM, "-"], input=raw, capture_output=True, check=False, timeout=30)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _release() -> tuple[int, ...]:
    assert PROGRAM is not None
    shown = subprocess.run([PROGRAM, "--version"], capture_output=True, check=True, timeout=30).stdout.decode()
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", shown)
    return tuple(map(int, match.groups())) if match else (99,)


def _known() -> list[int]:
    """Minor versions that the program reads."""
    return [
        minor
        for minor in range(NEWEST + 1)
        if _theirs(json.dumps({"ignition": {"version": version_text(minor)}}).encode())[0] == 0
    ]


CHANGED = (
    (r"(?m): unused key ", ": Unused key "),
    (r"bits are not supported in spec versions older than 3\.4\.0", "bits are not supported or functional in …"),
    (
        r"bits are not supported or functional in spec versions older than 3\.6\.0",
        "bits are not supported or functional in …",
    ),
    (r"(?m)^error at line.*(json: cannot unmarshal|invalid character|unexpected end).*$", "error in the JSON"),
)


LATER = re.compile(r"(?m)^warning.*: (user/group ignored for hard link|filesystem overwrites .*|.*will be wiped)$\n?")
"""Warnings that releases before 2.20 do not give."""


def _even(text: str) -> list[str]:
    """Lines whose order is not a promise, without what differs between releases. The program uses its report as a
    format, so a percent sign of ours would come out mangled."""
    for pattern, same in CHANGED:
        text = re.sub(pattern, same, text)
    return sorted(text.strip().split("\n"))


def _same(raw: bytes, release: tuple[int, ...]) -> None:
    _, report, error = parse(raw, release_2_26=release < (2, 27))
    code, out, err = _theirs(raw)
    if "%" in str(report):
        assert code == (1 if error else 0), raw
        return
    refused = error if error and not report.fatal else None
    wanted = f"couldn't parse config: {refused}\n" if refused else ""
    ours = LATER.sub("", str(report)) if release < (2, 20) else str(report)
    assert (_even(ours), 1 if error else 0, wanted) == (_even(out), code, err), raw.decode("utf-8", "replace")


def test_random_configurations_get_the_same_report() -> None:
    release, known = _release(), _known()
    assert known, "the program reads no version of ours"
    for seed in range(150):
        chance = random.Random(seed)
        minor = chance.choice(known)
        raw = json.dumps(config(minor, chance), indent=chance.choice((None, 1, 4)), ensure_ascii=False).encode()
        _same(raw, release)


def test_recorded_configurations_get_the_same_report() -> None:
    release, known = _release(), {version_text(minor) for minor in _known()}
    for case in run_as("validate", "ignition-validate"):
        raw = raw_input(case)
        match = re.search(rb'"version":\s*"([^"]*)"', raw)
        if match is None or match[1].decode() in known:
            _same(raw, release)

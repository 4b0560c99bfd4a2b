"""What the whole suite says at its end: figures that tests measured, and what was skipped for which reason."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import marks, recorded

SOURCES = Path(__file__).resolve().parents[1] / "src"


def start_children_from(sources: Path) -> None:
    """Processes that tests start import the sources beside these tests, as the tests do, whichever are installed; and
    everything is compiled once instead of at each start (a third of a suite's time where the caller forbids it)."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(sources)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(sources), *paths])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


start_children_from(SOURCES)

MEMORY = Path("/dev/shm")
ROOM_BYTES = 6 * 2**30
"""What a whole run leaves at most, several times over."""


def keep_folders_in_memory(memory: Path) -> None:
    """Temporary folders of tests lie in memory where there is room and programs may be started from it: a run syncs
    tens of thousands of files, and each waits for the disk."""
    if not memory.is_dir() or not os.access(memory, os.W_OK) or "PYTEST_DEBUG_TEMPROOT" in os.environ:
        return
    there = os.statvfs(memory)
    if there.f_bavail * there.f_frsize >= ROOM_BYTES and not there.f_flag & os.ST_NOEXEC:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)


keep_folders_in_memory(MEMORY)

SECONDS = Path(__file__).with_name("seconds.json")
"""Seconds of CPU of each file of tests, with its children: `tools/check.py` chooses by it what fits into a minute."""
BEGUN = pytest.StashKey[float]()
LEFT = "left for the whole suite"

settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
"""The same examples on every machine, busy or not: a property that fails, fails for everybody."""

Figure = Callable[[str, str], None]
FIGURE = "figure"

LONGEST = "tests/conformance/"
"""Single tests of minutes: they begin first, so that no worker is left alone with one at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs of examples anew")
    parser.addoption("--update-seconds", action="store_true", help=f"write how long each file took to {SECONDS.name}")
    parser.addoption(
        "--within", type=float, default=0.0, help="start no test later than so many seconds after the first"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[BEGUN] = time.monotonic()


GARBAGE = (20_000, 10, 10)
"""Worlds in memory are large and short-lived: looking for garbage as often as Python does by itself takes a fifth of
the time of their tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays: it is left out of every search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE)
        gc.enable()


GROWN = 256 * 1024 * 1024
"""Bytes that a process may grow by before all of it is searched for garbage: by itself Python searches the old objects
when a quarter more of them are there, which is gigabytes late in a run."""
STATM = Path("/proc/self/statm")
_resident = [0]


def pytest_runtest_logfinish() -> None:
    """Collect the worlds of tests that have ended once they weigh."""
    if not STATM.exists():
        return
    if _resident_bytes() > _resident[0] + GROWN:
        gc.collect()
        _resident[0] = _resident_bytes()


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marks.mark(items)
    recorded.say_what_is_absent(items)
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    within = item.config.getoption("--within")
    if within and time.monotonic() - item.config.stash[BEGUN] > within:
        pytest.skip(f"{LEFT} ({within:.0f} s are over)")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected outputs are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """``figure(name, text)``: a line under "figures" at the session's end. Travels with the report, so it also comes
    from parallel workers."""

    def note(name: str, text: str) -> None:
        request.node.user_properties.append((FIGURE, f"{name}: {text}"))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group if hasattr(report, "when")]
    figures = {text for each in reports for name, text in getattr(each, "user_properties", ()) if name == FIGURE}
    if terminalreporter.config.getoption("--update-seconds"):
        _write_seconds(reports)
    lines = sorted(figures) + _recorded(reports) + _attacks(reports)
    if lines:
        terminalreporter.section("figures")
        for text in lines:
            terminalreporter.write_line(text)
    skipped = Counter(_why(report) for report in reports if report.skipped)
    if skipped:
        terminalreporter.section("skipped")
        for why, count in sorted(skipped.items()):
            terminalreporter.write_line(f"{count} tests: {why}")
        absent = Counter({why: count for why, count in skipped.items() if why.startswith(recorded.ABSENT)})
        missing = sum(count for why, count in (skipped - absent).items() if marks.CLIENTS.search(why))
        terminalreporter.write_line(f"{missing} of {skipped.total()} skipped because a client is not installed")
        if absent:
            terminalreporter.write_line(f"{absent.total()} of {skipped.total()} skipped because recordings are absent")


def _write_seconds(reports: list[Any]) -> None:
    """Files that did not run keep what they had; those that are gone go."""
    known = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    found: Counter[str] = Counter()
    for report in reports:
        found[report.nodeid.partition("::")[0]] += getattr(report, "duration", 0.0)
    table = known | {path: round(seconds, 1) for path, seconds in found.items()}
    kept = {path: table[path] for path in sorted(table) if (SECONDS.parents[1] / path).is_file()}
    SECONDS.write_text(json.dumps(kept, indent=0) + "\n")


def _recorded(reports: list[Any]) -> list[str]:
    """One line for each ``test_…_recorded.py`` with a case per test: how many of them agree."""
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for report in reports:
        path, _, test = report.nodeid.partition("::")
        if report.when == "call" and path.endswith("_recorded.py") and "[" in test:
            total[path] += 1
            passed[path] += report.passed
    return [f"recorded cases, {path}: {passed[path]} of {count} agree" for path, count in sorted(total.items())]


ATTACKS = (
    "tests/attacks/",
    "tests/gitops/borders/",
    "tests/sources/test_address.py",
    "tests/sources/providers/test_borders.py",
    "tests/sources/test_borders.py",
    "tests/sources/test_tarpits.py",
    "tests/assembly/test_browsers.py",
    "tests/assembly/test_nothing_disclosed.py",
    "tests/base/test_browserguard.py",
    "tests/base/test_masking.py",
    "tests/cli/test_terminal.py",
    "tests/kube/test_cel_costs.py",
    "tests/kube/test_hostile_texts.py",
)
"""Files whose tests are attacks on a border (docs/security.md)."""


def _attacks(reports: list[Any]) -> list[str]:
    """One line for each class of attacks: how many were tried and held."""
    total: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for report in reports:
        path = report.nodeid.partition("::")[0]
        if report.when == "call" and path.startswith(ATTACKS) and not report.skipped:
            total[path] += 1
            held[path] += report.passed
    return [f"attacks, {path}: {held[path]} of {count} held" for path, count in sorted(total.items())]


def _why(report: Any) -> str:
    """The sentence given to ``pytest.skip``; its third part where pytest also kept file and line."""
    expected = getattr(report, "wasxfail", "")
    if expected:
        return f"known difference: {expected.removeprefix('reason: ')}"
    found = report.longrepr
    return str(found[2] if isinstance(found, tuple) else found).removeprefix("Skipped: ")

"""What a change can break, in under a minute: lint, types (mypy's daemon) and the tests that it reaches by imports.

``python3 run.py check`` takes what differs from main, ``python3 run.py check kube`` all that is in a room. Tests of the
changed rooms run first, then those that are fewest imports away; what does not fit is named at the end and left to
``python3 run.py test``. Standard library only, so arguments are judged before anything is installed. Begin at ``run``.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 60.0
RESERVED_S = 14.0
"""Of it for lint, the start of the tests, and the last of them."""
CORES = 2
UNKNOWN_S = 1.0
"""What a file of tests is taken to need that ``tests/seconds.json`` does not name yet."""
ALWAYS = "tests/style/"
MAINS = ("main", "origin/main", "origin/HEAD", "master")
PLACES = ("src/syncline", "tests", "bench", "tools")

_DOTTED = re.compile(r"\b(?:syncline|tests|bench|tools)(?:\.\w+)+")
_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_LATE = re.compile(r"^(\d+) tests: left for the whole suite")
_WORD = re.compile(r"\w+")

Graph = Mapping[str, frozenset[str]]
"""For each file what it imports or names, as files."""


def say(text: str) -> None:
    print(f"[check] {text}", flush=True)


# -- what a change reaches: functions of values ---------------------------------------------------------------------


def module_of(path: str) -> str:
    """``src/syncline/kube/transport/http.py`` is ``syncline.kube.transport.http``; a package is named by its folder."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def graph_of(texts: Mapping[str, str]) -> Graph:
    """Imports and names of modules anywhere in a text: programs in strings (``python -c``, ``-m``) reach them too."""
    home = {module_of(path): path for path in texts}
    return {path: frozenset(_named(path, text, home)) for path, text in texts.items()}


def _named(path: str, text: str, home: Mapping[str, str]) -> Iterable[str]:
    names = set(_DOTTED.findall(text))
    for module, imported in _FROM.findall(text):
        names |= {module, *(f"{module}.{name}" for name in _WORD.findall(imported))}
    for name in names:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            found = home.get(".".join(parts[:end]))
            if found and found != path:
                yield found
    for folder in PurePosixPath(path).parents:
        if (fixtures := f"{folder}/conftest.py") in home.values() and fixtures != path:
            yield fixtures


def reached(graph: Graph, changed: Iterable[str]) -> dict[str, int]:
    """How many imports each file is away from what changed."""
    importers: dict[str, list[str]] = {}
    for path, imported in graph.items():
        for each in imported:
            importers.setdefault(each, []).append(path)
    steps = dict.fromkeys(changed, 0)
    edge = list(steps)
    while edge:
        edge = [
            up for path in edge for up in importers.get(path, ()) if steps.setdefault(up, steps[path] + 1) > steps[path]
        ]
        edge = list(dict.fromkeys(edge))
    return steps


def touched(path: str, texts: Mapping[str, str]) -> set[str]:
    """The files of ``texts`` that a changed file is or changes: data of a package belongs to its modules, a document or
    an example to the files that name it."""
    if path in texts:
        return {path}
    pure = PurePosixPath(path)
    if path.startswith(("src/", "tests/")):
        for folder in pure.parents:
            if near := {each for each in texts if PurePosixPath(each).parent == folder}:
                return near
    names = {pure.name, pure.parts[0]} if pure.parts[0] in ("examples", "deploy") else {pure.name}
    return {each for each, text in texts.items() if any(name in text for name in names)}


def is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") and path.endswith(".py")


def _is_rule(path: str) -> bool:
    return path.startswith(ALWAYS)


def folder_of(path: str) -> str:
    """The room of a file: its folder below ``src/syncline`` or ``tests``."""
    return PurePosixPath(path.removeprefix("src/syncline/").removeprefix("tests/")).parent.as_posix()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Files of tests in the order in which they run, and those that are left to the whole suite."""

    run: tuple[str, ...]
    left: tuple[str, ...]


def choose(steps: Mapping[str, int], changed: Iterable[str], seconds: Mapping[str, float], budget_s: float) -> Chosen:
    """Rules of the house always, then tests of the rooms that changed, then the nearest; short ones first of equals."""
    rooms = {folder_of(path) for path in changed}

    def rank(test: str) -> tuple[bool, bool, int, float, str]:
        mine = folder_of(test)
        near = any(f"{mine}/".startswith(f"{room}/") or room.startswith(f"{mine}/") for room in rooms - {"."})
        return not test.startswith(ALWAYS), not near, steps.get(test, 0), seconds.get(test, UNKNOWN_S), test

    run, left, spent = [], [], 0.0
    for test in sorted((path for path in steps if is_test(path)), key=rank):
        cost = seconds.get(test, UNKNOWN_S)
        if spent + cost <= budget_s or test.startswith(ALWAYS):
            run.append(test)
            spent += cost
        else:
            left.append(test)
    return Chosen(tuple(run), tuple(left))


def rooms_of(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files of each room, those below it too."""
    found: dict[str, list[str]] = {}
    for path in paths:
        if not path.startswith(("src/syncline/", "tests/")):
            continue
        for room in (PurePosixPath(folder_of(path)), *PurePosixPath(folder_of(path)).parents):
            found.setdefault(room.as_posix(), []).append(path)
    return {room: files for room, files in found.items() if room != "."}


def room_named(given: str, rooms: Iterable[str]) -> str:
    """Raises ValueError with the nearest names."""
    known = sorted(rooms)
    name = given.strip("/").removeprefix("./").removeprefix("src/").removeprefix("syncline/").removeprefix("tests/")
    if name in known:
        return name
    ends = [room for room in known if room.split("/")[-1] == name]
    near = ends or difflib.get_close_matches(name, known, 3, 0.5)
    top = ", ".join(room for room in known if "/" not in room)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"no room is named {given!r}: {hint}rooms are folders of src/syncline and tests: {top}")


# -- the repository and the programs --------------------------------------------------------------------------------


def read_texts() -> dict[str, str]:
    files = (file for place in PLACES for file in (ROOT / place).rglob("*.py") if "node_modules" not in file.parts)
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.split("\0" if "-z" in words else None) if done.returncode == 0 else []


def changed_files() -> tuple[str, list[str]]:
    """What the change is compared with, and the files that differ, untracked ones too; deleted ones by their names."""
    name, base = next(
        ((each, found[0]) for each in MAINS if (found := _git("merge-base", "HEAD", each))), ("HEAD", "HEAD")
    )
    files = [*_git("diff", "--name-only", "-z", base), *_git("ls-files", "--others", "--exclude-standard", "-z")]
    return name, sorted({file for file in files if file})


def parse(arguments: list[str]) -> str:
    """The room that is asked for, empty for what differs from main. Ends the program where there is none."""
    parser = argparse.ArgumentParser(
        prog="run.py check",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Lint, types and the tests that a change reaches by imports, in about a minute on two cores.",
        epilog="examples:\n"
        "  python3 run.py check                  what differs from main, committed or not\n"
        "  python3 run.py check kube             a room, as if all of it had changed\n"
        "  python3 run.py check cluster/builtin  a room within a room\n\n"
        "Tests of the room run first, then the nearest by imports. What does not fit into the minute is named at the\n"
        "end: `python3 run.py test` runs everything.",
    )
    parser.add_argument(
        "room", nargs="?", default="", help="a folder of src/syncline or tests; default: what differs from main"
    )
    given: str = parser.parse_args(arguments).room
    if not given:
        return ""
    files = (file.relative_to(ROOT).as_posix() for place in PLACES[:2] for file in (ROOT / place).rglob("*.py"))
    try:
        return room_named(given, rooms_of(files))
    except ValueError as error:
        parser.exit(2, f"[check] {error}\n")


def _types(python: str) -> subprocess.Popen[str]:
    """mypy's daemon: the first run reads everything, later ones what changed."""
    cache = ROOT / ".mypy_cache"
    cache.mkdir(exist_ok=True)
    command = [python, "-m", "mypy.dmypy", "--status-file", str(cache / "daemon.json")]
    command += ["run", "--timeout", "3600", "--", "--strict", "-p", "syncline"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _tests(python: str, within_s: float, files: Sequence[str]) -> tuple[int, int]:
    """The exit code, and how many tests there was no time for. Two files at a time, in their order."""
    command = [python, "-m", "pytest", "-n", str(CORES), "--dist", "loadfile", "--no-loadscope-reorder"]
    command += [f"--within={within_s:.0f}", f"--color={'yes' if sys.stdout.isatty() else 'no'}", *files]
    late = 0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if found := _LATE.search(line):
                late += int(found[1])
    return running.returncode, late


def _what_is_left(chosen: Chosen, seconds: Mapping[str, float]) -> str:
    if not chosen.left:
        return "every file of tests that the change reaches was chosen"
    rooms = Counter(folder_of(test).split("/")[0] for test in chosen.left)
    needs = sum(seconds.get(test, UNKNOWN_S) for test in chosen.left)
    which = ", ".join(f"{room} {count}" for room, count in rooms.most_common())
    return (
        f"{len(chosen.left)} more files of tests are reached, about {needs / CORES / 60:.0f} min, left for "
        f"`python3 run.py test`: {which}"
    )


def run(room: str, python: str) -> int:
    """Check; 1 where anything fails."""
    begun = time.monotonic()
    texts = read_texts()
    if room:
        against, changed = room, rooms_of(texts)[room]
    else:
        against, changed = changed_files()
    starts = {each for path in changed for each in touched(path, texts)}
    steps = reached(graph_of(texts), starts) | dict.fromkeys(filter(_is_rule, texts), 0)
    table = ROOT / "tests" / "seconds.json"
    seconds: dict[str, float] = json.loads(table.read_text()) if table.exists() else {}
    chosen = choose(steps, starts, seconds, CORES * (WITHIN_S - RESERVED_S) * 0.6)
    say(f"{len(changed)} files of {against}" if room else f"{len(changed)} files differ from {against}")
    say(f"they reach {len(chosen.run) + len(chosen.left)} files of tests; {len(chosen.run)} are run")

    types = _types(python)
    failed = [] if subprocess.call([python, "-m", "ruff", "check", "."], cwd=ROOT) == 0 else ["ruff"]
    within = max(5.0, WITHIN_S - RESERVED_S / 2 - (time.monotonic() - begun))
    code, late = _tests(python, within, chosen.run)
    if code != 0:
        failed.append("pytest")
    told, _ = types.communicate()
    print(told, end="")
    if types.returncode != 0:
        failed.append("mypy")
    say(_what_is_left(chosen, seconds))
    if late:
        say(f"{late} chosen tests had no time, the machine is busy: left for `python3 run.py test` too")
    took = f"{time.monotonic() - begun:.0f} s"
    say(f"failed after {took}: {', '.join(failed)}" if failed else f"passed in {took}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:]), sys.executable))

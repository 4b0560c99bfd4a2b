"""Reads the scenarios of a file ``*.rehearsal.yaml``: :func:`read_cases`; finds such files: :func:`case_files`.

Everything in such a file is hostile: paths stay in the tested folder, and size, number and time are bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from syncline.kube.text.durations import format_duration
from syncline.kube.yaml.loading import YamlError, dump, load
from syncline.rehearsal.answer.laws import RecordLaw
from syncline.rehearsal.answer.ownlaws import FIRST_LINE, KEYS, SUFFIX, own_laws
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.files import HIDDEN, Files, read_files
from syncline.rehearsal.given.snapshotfile import read_snapshot
from syncline.rehearsal.given.world import GivenWorld, default_world, parse_world, read_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.rehearsing import laws_of
from syncline.rehearsal.repository import files_at
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.case import Case, Expectation, Laws, Verdict
from syncline.rehearsal.testing.changes import changed_files, happenings
from syncline.rehearsal.testing.expectations import expectation
from syncline.rehearsal.testing.mishaps import schedule

MAX_BYTES = 1024 * 1024
MAX_FILES, MAX_CASES, MAX_EXPECTED, MAX_SEEDS, MAX_SEED = 1_000, 200, 200, 100, 1_000_000
MAX_WALKED = 200_000
"""Folders and files that are looked through for scenarios."""
UNTIL, MAX_UNTIL = timedelta(hours=24), timedelta(days=7)
CASE = (
    *("name", "about", "repository", "path", "namespace", "application", "world", "snapshot", "deployed"),
    *("seeds", "until", "faults", "without", "when", "expect"),
)
DEPLOYED = ("revision", "folder", "files", "set", "remove")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_. ]{0,98}[A-Za-z0-9])?")
_APPLICATION = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")


def case_files(place: Path) -> tuple[Path, ...]:
    """Return the files of a folder, or the named one, in order. Raises ScenarioError (usage)."""
    if place.is_file():
        return (place,)
    if not place.is_dir():
        raise ScenarioError(f"{place}: there is no such file or folder", usage=True)
    found: list[Path] = []
    walked = 0
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in HIDDEN)
        walked += len(names) + len(folders)
        if walked > MAX_WALKED:
            raise ScenarioError(f"{place}: found more than {MAX_WALKED} files; name a folder of it", usage=True)
        files = (Path(folder) / name for name in sorted(names) if name.endswith(SUFFIX))
        found += [file for file in files if file.is_file() and not file.is_symlink()]
    if len(found) > MAX_FILES:
        raise ScenarioError(f"{place}: found {len(found)} files *{SUFFIX}; allowed: {MAX_FILES}", usage=True)
    return tuple(sorted(found))


def root_of(place: Path) -> Path:
    """Return the folder that scenarios may read: the Git work tree around ``place``, or else its own folder."""
    folder = place if place.is_dir() else place.parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def read_cases(file: Path, more: Sequence[RecordLaw] = ()) -> tuple[Case, ...]:
    """Return the scenarios of a file; none if it has only laws. ``more``: laws to which all are held. Raises
    ScenarioError (usage) with path, what was found and what is allowed."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ScenarioError(f"{file}: is larger than {MAX_BYTES} bytes; make two files of it")
        text = file.read_text("utf-8", "replace")
        if not text.startswith(FIRST_LINE):
            said = f"the first line is not {FIRST_LINE!r}, so that the file would be deployed; put it there"
            raise ScenarioError(f"{file}: {said}")
        found = Field(file, "", load(text.encode(), file=str(file))).known(*KEYS)["scenarios"]
        entries = found.each()
        if len(entries) > MAX_CASES:
            raise found.wrong(f"{len(entries)} scenarios", f"at most {MAX_CASES} in a file")
        cases = tuple(_case(_Reader(file, text, more), one) for one in entries)
        names = [case.name for case in cases]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise entries[number]["name"].wrong(f"the name {name} twice", "a name that no other scenario has")
    except YamlError as error:
        raise ScenarioError(str(error), usage=True) from error
    except ScenarioError as error:
        raise ScenarioError(str(error), usage=True) from error
    return cases


def _case(reader: _Reader, at: Field) -> Case:
    """As the reader's; an error of what the scenario names has its place before it."""
    try:
        return reader.case(at)
    except ScenarioError as error:
        said = str(error)
        raise ScenarioError(said if said.startswith(str(at.file)) else f"{at.file}: {at.where}: {said}") from error


class _Reader:
    """Reads the scenarios of one file."""

    def __init__(self, file: Path, text: str, more: Sequence[RecordLaw]) -> None:
        self.file, self.text, self.more = file, text, more
        self.root = root_of(file.resolve()).resolve()

    def below(self, at: Field) -> Path:
        """Return the place that a field names, beside the file or below, and never outside the tested folder."""
        place = (self.file.parent / at.text(".")).resolve()
        if not isinstance(at.value, str | None) or not place.is_relative_to(self.root):
            raise at.wrong(repr(at.value), f"a place in {self.root}")
        if not place.exists():
            raise at.wrong(repr(at.value), "a file or folder that is there")
        return place

    def case(self, at: Field) -> Case:
        name = at.known(*CASE).needed("name", "a name such as one-reboot-each")
        if not _NAME.fullmatch(name):
            raise at["name"].wrong(repr(name), "at most 100 letters, digits, spaces, and - _ . between them")
        folder = self.below(at["repository"])
        files = read_files(folder)
        world = self._world(at, files)
        before = self._deployed(at["deployed"], files, folder)
        asked = Asked(
            self._application(at["application"], folder),
            files,
            world,
            before,
            namespace=at["namespace"].text(),
            path=at["path"].text(),
            schedule=schedule(at["faults"]),
            until=self._until(at["until"]),
        )
        try:
            _ = asked.applications
        except ScenarioError as error:
            raise at["repository"].wrong(repr(at["repository"].text(".")), f"a folder to deploy: {error}") from error
        laws = self._laws(at, files, folder)
        happening = happenings(at["when"], files, before, folder, self.below)
        if any(each.at >= asked.until for each in happening):
            raise at["until"].wrong(repr(at["until"].text("24h")), "a time after all that happens")
        return Case(
            str(self.file),
            name,
            at["about"].text(),
            asked,
            happening,
            self._expected(at["expect"], laws),
            self._seeds(at["seeds"]),
            laws,
        )

    def _world(self, at: Field, files: Files) -> GivenWorld:
        given, taken = at["world"], at["snapshot"]
        if given.value is not None and taken.value is not None:
            raise at.wrong("world and snapshot", "one of them")
        if taken.value is not None:
            return read_snapshot(self.below(taken))
        if given.value is None:
            return default_world(files)
        if isinstance(given.value, str):
            return read_world(self.below(given))
        return parse_world(dump(given.map()), self.file.with_name(f"{self.file.name}: {given.where}"))

    def _deployed(self, at: Field, files: Files, folder: Path) -> Files | None:
        if at.value is None:
            return None
        if at.value == "same":
            return files
        at.known(*DEPLOYED)
        if at["revision"].value is not None:
            files = files_at(folder, at["revision"].text())
        return changed_files(at, files, self.below)

    def _application(self, at: Field, folder: Path) -> str:
        name = at.text() or re.sub(r"[^a-z0-9]+", "-", folder.name.lower())[:50].strip("-") or "repository"
        if not _APPLICATION.fullmatch(name):
            raise at.wrong(repr(name), "at most 50 lower case letters, digits and -")
        return name

    def _until(self, at: Field) -> timedelta:
        found = at.duration(UNTIL)
        if found > MAX_UNTIL:
            raise at.wrong(repr(at.value), f"at most {format_duration(MAX_UNTIL)}")
        return found

    def _laws(self, at: Field, files: Files, folder: Path) -> tuple[RecordLaw, ...]:
        """Return the built-in laws, those of the repository, and those of this file."""
        within = self.file.resolve().is_relative_to(folder)
        own = () if within else own_laws(Files({self.file.name: self.text.encode()}))
        return laws_of(files, at["without"].texts(), (*own, *self.more))

    def _expected(self, at: Field, laws: Sequence[RecordLaw]) -> tuple[Expectation, ...]:
        entries = at.each()
        if len(entries) > MAX_EXPECTED:
            raise at.wrong(f"{len(entries)} entries", f"at most {MAX_EXPECTED}")
        found = tuple(expectation(one) for one in entries)
        known = [law.name for law in laws]
        for one in found:
            if isinstance(one.wanted, Laws):
                for name in (*one.wanted.broken, *one.wanted.held):
                    if name not in known:
                        raise Field(at.file, f"{one.where}.laws", name).wrong(repr(name), ", ".join(known))
        return found

    def _seeds(self, at: Field) -> tuple[int, ...]:
        given = at.value
        if given is None:
            return (1,)
        seeds = range(1, min(given, MAX_SEEDS + 1) + 1) if type(given) is int else [one.value for one in at.each()]
        if not 1 <= len(seeds) <= MAX_SEEDS or not all(type(one) is int and 0 <= one <= MAX_SEED for one in seeds):
            raise at.wrong(repr(given), f"a count from 1 to {MAX_SEEDS}, or a list of seeds from 0 to {MAX_SEED}")
        return tuple(dict.fromkeys(seeds))


def expects_a_verdict(case: Case) -> bool:
    """Return whether an entry says how it ends; without one it must end safe."""
    return any(isinstance(one.wanted, Verdict | Laws) and _decides(one.wanted) for one in case.expected)


def _decides(wanted: Verdict | Laws) -> bool:
    return isinstance(wanted, Verdict) or bool(wanted.broken)

"""What the machine may do to the files: stop at any write, forget what was not synced, fail a sync, have no space. What
was acknowledged is there afterwards, and what is there is the state of one moment."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.datafiles import Contents, Writer, bytes_of, contents, killed, read, writing
from tests.cluster.faulty_files import Faults, Platter, Step, available, installed
from tests.conftest import Figure

import syncline.cluster.storage.disk as disk_module
from syncline.cluster.storage.disk import DiskError
from syncline.cluster.storage.store import Key, WriteRefused

NAME = "cluster.db"
LONG = bool(os.environ.get("SYNCLINE_LONG_TESTS"))
"""All places instead of some."""
WRITES = 60
HEADER, FRAME_HEADER = 32, 24
"""Of a log (sqlite.org/fileformat2.html, section 4)."""

needs_layer = pytest.mark.skipif(not available(), reason="SQLite is built into this Python: no layer fits below it")


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is moved and space given back all the time."""
    monkeypatch.setattr(disk_module, "CHECKPOINT_AFTER_BYTES", 30_000)
    monkeypatch.setattr(disk_module, "GIVE_BACK_FROM_PAGES", 4)
    monkeypatch.setattr(disk_module, "GIVE_BACK_STEP_PAGES", 2)
    monkeypatch.setattr(disk_module, "IDLE_S", 0.02)
    monkeypatch.setattr(disk_module, "LOOK_FOR_SPACE_S", 0.01)
    monkeypatch.setattr(disk_module, "PROBE_BYTES", 5000)


def _work(writer: Writer, chance: random.Random, expected: dict[int, Contents], writes: int = WRITES) -> None:
    """Puts and removals of different sizes, one or several a commit. Stops when the disk refuses or fails."""
    names: list[str] = sorted(key[2] for key in contents(writer.store))
    for _ in range(writes):
        for _ in range(chance.choice((1, 1, 3))):
            try:
                if names and chance.random() < 0.3:
                    writer.delete(names[0])
                    names.pop(0)
                else:
                    name = f"c{chance.randrange(30)}"
                    writer.put(name, "x" * chance.choice((10, 500, 9000)))
                    names = [*(n for n in names if n != name), name]
            except WriteRefused:
                break
            expected[writer.store.revision] = contents(writer.store)
        if not writer.settle():
            return


# -- the power goes -------------------------------------------------------------------------------------------------


@needs_layer
def test_after_a_power_cut_at_any_step_the_state_is_of_one_moment_and_none_too_old(
    tmp_path: Path, figure: Figure
) -> None:
    path, expected, chance = tmp_path / "live" / NAME, {0: Contents()}, random.Random(3)
    with writing(path):
        pass
    before = bytes_of(path.parent)
    with installed(Faults(keep=True)) as faults:
        for _ in range(2):  # the second life finds the first one's file, and moves its log when it stops
            with writing(path) as writer:
                writer.listeners.append(lambda revision: faults.note(Step("told", at=revision)))
                _work(writer, chance, expected)
                writer.await_rest()
    platter, acknowledged, cuts, unsynced = Platter(before), 0, 0, 0
    places = set(range(len(faults.steps))) if LONG else set(chance.sample(range(len(faults.steps)), 250))
    for number, step in enumerate(faults.steps):
        platter.take(step)
        acknowledged = step.at if step.what == "told" else acknowledged
        if number not in places:
            continue
        for seed in (None, number, -number):
            work = tmp_path / f"cut{cuts}"
            work.mkdir()
            for name, content in platter.after_power_cut(None if seed is None else random.Random(seed)).items():
                (work / name).write_bytes(content)
            revision, found = read(work / NAME)
            assert revision >= acknowledged, f"step {number} ({step.what} of {step.name}): lost an acknowledged write"
            assert found == expected[revision], f"step {number}: a state that never was"
            cuts, unsynced = cuts + 1, unsynced + (platter.unsynced() > 0)
    assert unsynced > 50
    figure(
        "power cuts",
        f"{cuts} at {len(places)} of {len(faults.steps)} steps, {unsynced} with unsynced writes; 0 bytes lost, 0 torn",
    )


def _ends_of_commits(log: bytes) -> Iterator[int]:
    """Where each commit of the log ends."""
    size: int = struct.unpack(">I", log[8:12])[0]
    for at in range(HEADER, len(log) - size, FRAME_HEADER + size):
        if struct.unpack(">I", log[at + 4 : at + 8])[0]:
            yield at + FRAME_HEADER + size


def test_a_log_cut_at_any_place_gives_the_commits_before_it(
    tmp_path: Path, figure: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where the machine still knows that more was acknowledged, it says so instead of going on without it."""
    monkeypatch.setattr(disk_module, "CHECKPOINT_AFTER_BYTES", 1 << 40)
    monkeypatch.setattr(disk_module, "IDLE_S", 60.0)
    path, expected, by_commit = tmp_path / "live" / NAME, {0: Contents()}, [0]
    with writing(path) as writer:
        writer.listeners.append(by_commit.append)
        _work(writer, random.Random(5), expected, 12)
        copy = killed(path, tmp_path / "killed")
    log = (copy.parent / f"{NAME}-wal").read_bytes()
    ends = list(_ends_of_commits(log))
    commits = by_commit[len(by_commit) - len(ends) :]
    places = {0, 1, HEADER - 1, HEADER, *range(512, len(log), 2048)}
    for end in ends:
        places |= {end - 1, end, end + 1, end + FRAME_HEADER - 1, end + FRAME_HEADER, end + FRAME_HEADER + 1}
    for place in sorted(places):
        work = tmp_path / f"at{place}"
        cut = killed(copy, work)
        (work / f"{NAME}-wal").write_bytes(log[:place])
        before = bytes_of(work)
        if place < len(log):
            with pytest.raises(DiskError, match=f"but {by_commit[-1]} was acknowledged"):
                read(cut)
            assert bytes_of(work) == before
        (work / f"{NAME}.lock").unlink()
        whole = sum(end <= place for end in ends)
        revision, found = read(cut)
        assert revision == (commits[whole - 1] if whole else 0) and found == expected[revision]
    figure("logs cut short", f"{len(places)} places in {len(ends)} commits: each time the commits before it, 0 torn")


# -- a sync fails ---------------------------------------------------------------------------------------------------


@needs_layer
def test_a_failed_sync_is_never_acknowledged_and_ends_the_writer(tmp_path: Path, figure: Figure) -> None:
    failures = lost = 0
    for number in range(1, 400 if LONG else 60, 1 if LONG else 3):
        path, expected = tmp_path / str(number) / NAME, {0: Contents()}
        told: list[tuple[int, bool]] = []
        with writing(path):
            pass
        with installed(Faults(fails={("sync", number): sqlite3.SQLITE_IOERR_FSYNC})) as faults:
            try:
                writer = Writer(path)
            except DiskError as error:
                assert "SQLITE_IOERR_FSYNC" in str(error)
                continue
            writer.listeners.append(lambda revision, f=faults, t=told: t.append((revision, bool(f.failed))))
            _work(writer, random.Random(number), expected)
            if not faults.failed:
                writer.close()  # fewer syncs than that
                continue
            writer.await_failure()
            copy = killed(path, tmp_path / f"{number}-killed")
            assert "cannot write" in str(writer.failure) and "SQLITE_IOERR_FSYNC" in str(writer.failure)
            with pytest.raises(WriteRefused):
                writer.put("after")
            writer.close()
        # The very commit whose sync failed, and all that came after it, was told to nobody. A sync that failed while
        # the log was moved came after its commit had been synced.
        while_moving = faults.failed[0].endswith(NAME)
        assert not any(late for _, late in told) or while_moving
        revision, found = read(copy)
        lost += revision < max((revision for revision, _ in told), default=0)
        assert found == expected[revision]
        failures += 1
    assert not lost
    figure(
        "failed syncs", f"{failures} at different commits: 0 acknowledged, 0 acknowledged writes lost, writer stopped"
    )


# -- no space -------------------------------------------------------------------------------------------------------


@needs_layer
@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE], ids=["full", "quota"])
def test_a_write_that_does_not_fit_is_taken_back_whole_and_the_next_goes_through(
    tmp_path: Path, figure: Figure, code: int
) -> None:
    refused = 0
    for number in range(20, 420, 2 if LONG else 20):
        path, expected, chance = tmp_path / str(number) / NAME, {0: Contents()}, random.Random(number)
        with writing(path):
            pass
        fails = {("write", number + more): code for more in range(number % 7)}
        with installed(Faults(fails={("write", number): code, **fails})):
            writer = Writer(path)
            _work(writer, chance, expected)
            if writer.refused:
                assert contents(writer.store) == expected[writer.durable]
                writer.await_space()
                refused += 1
            given = writer.store.put(Key("/configmaps", "demo", "after"), {"metadata": {"name": "after"}}, expect=None)
            assert given.revision not in expected, "revisions never repeat"
            assert writer.settle()
            after = contents(writer.store)
            copy = killed(path, tmp_path / f"{number}-killed")
            writer.close()
        assert read(copy) == read(path) == (given.revision, after)
    assert refused > 5
    figure(f"writes without space ({code})", f"{refused} refused and taken back, 0 acknowledged ones lost")

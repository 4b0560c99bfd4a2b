"""What cannot be read is refused in one sentence and left byte for byte alone; nothing is ever read wrongly."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.datafiles import bytes_of, contents, killed, make_format_1, read, writing
from tests.conftest import Figure

from syncline.cluster.storage.datafile import SCHEMA_VERSION
from syncline.cluster.storage.disk import CHECKPOINT_AFTER_BYTES, Disk, DiskError
from syncline.cluster.storage.store import Key

NAME = "cluster.db"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory as a kill left it: part of it only in the log."""
    path = tmp_path / "live" / NAME
    with writing(path) as writer:
        for number in range(40):
            writer.put(f"c{number}", f"value {number} " * 20)
        assert writer.settle()
        writer.disk._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for number in range(20, 60):
            writer.put(f"c{number}", f"second {number} " * 20)
        writer.delete("c3")
        assert writer.settle()
        return killed(path, tmp_path / "data")


def _altered(path: Path, sql: str) -> None:
    """As somebody else's tool would leave it."""
    with sqlite3.connect(path) as connection:
        connection.executescript(sql)
    connection.close()


def _overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _missing_log(path: Path) -> None:
    (path.parent / f"{NAME}-wal").unlink()


def _garbled_log(path: Path) -> None:
    log = path.parent / f"{NAME}-wal"
    log.write_bytes(log.read_bytes()[:-5000] + bytes(5000))


def _no_file_but_a_log(path: Path) -> None:
    path.unlink()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


NEWER = f"PRAGMA user_version = {SCHEMA_VERSION + 1}"
DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no bytes at all": (lambda p: _overwrite(p, b""), "is empty, which Syncline never leaves behind"),
    "text": (lambda p: _overwrite(p, b"hello, this is no database\n" * 99), "no database begins like that"),
    "half a file": (lambda p: _overwrite(p, p.read_bytes()[:9000]), "damaged|was acknowledged"),
    "zeros in the middle": (lambda p: _overwrite(p, p.read_bytes()[:4096] + bytes(8192)), "damaged"),
    "a directory": (_directory, "is a directory, where the data file belongs"),
    "a pipe": (_pipe, "is no regular file"),
    "the log is missing": (_missing_log, r"but 81 was acknowledged; its log cluster\.db-wal is damaged or missing"),
    "the log's end is garbled": (_garbled_log, "but 81 was acknowledged"),
    "the file is missing, its log is there": (_no_file_but_a_log, "to which this log belongs, is missing"),
    "a missing table": (lambda p: _altered(p, "DROP TABLE state"), "the table state is missing"),
    "a missing row of state": (lambda p: _altered(p, "DELETE FROM state"), "the row of the last revision is missing"),
    "a lost object": (lambda p: _altered(p, "DELETE FROM objects WHERE name = 'c7'"), "59 objects .* 58 are there"),
    "a changed value": (
        lambda p: _altered(
            p, "UPDATE objects SET raw = CAST(replace(raw, 'value', 'wrong') AS BLOB) WHERE name = 'c7'"
        ),
        "configmaps demo/c7 differs from its checksum",
    ),
    "a changed name": (
        lambda p: _altered(p, "UPDATE objects SET name = 'cx' WHERE name = 'c7'"),
        "configmaps demo/cx differs from its checksum",
    ),
    "exchanged values": (
        lambda p: _altered(
            p,
            "UPDATE objects SET (raw, checksum) = (SELECT raw, checksum FROM objects WHERE name='c8') WHERE name='c7'",
        ),
        "demo/c7 differs from its checksum",
    ),
    "an older revision": (lambda p: _altered(p, "UPDATE state SET revision = 9"), "the last revision differs"),
    "a newer format": (lambda p: _altered(p, NEWER), r"written by a newer Syncline \(format 3, this one knows 2\)"),
    "a format that never was": (lambda p: _altered(p, "PRAGMA user_version = -7"), "format -7 was never written"),
    "another program's": (lambda p: _altered(p, "PRAGMA application_id = 5"), "not a cluster of Syncline"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_it_is_refused_with_the_file_what_was_found_and_what_to_do_and_left_alone(data: Path, case: str) -> None:
    damage, said = DAMAGES[case]
    damage(data)
    before = bytes_of(data.parent)
    with pytest.raises(DiskError, match=said) as refused:
        Disk(data)
    assert str(data.parent) in str(refused.value)
    assert any(word in str(refused.value) for word in ("restore", "choose", "use that version", "move"))
    assert bytes_of(data.parent) == before
    with pytest.raises(DiskError, match=said):
        Disk(data)  # and the lock was let go of


def test_a_newer_file_with_a_log_that_was_not_yet_moved_keeps_its_log(data: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(data, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(NEWER)
    copy = killed(data, tmp_path / "newer")
    connection.close()
    before = bytes_of(copy.parent)
    assert before[f"{NAME}-wal"]
    with pytest.raises(DiskError, match="newer Syncline"):
        Disk(copy)
    assert bytes_of(copy.parent) == before


SOMEBODY_ELSE = """
import os, pathlib, sys
from syncline.cluster.storage.disk import Disk, DiskError
os.setresuid(65534, 65534, 65534)
try:
    Disk(pathlib.Path(sys.argv[1]))
except DiskError as refused:
    print(refused)
"""


def test_what_this_user_may_not_read_is_refused_with_its_owner_and_mode(data: Path) -> None:
    if os.geteuid() == 0:  # root may read everything: look as somebody else, in a process without other threads
        with tempfile.TemporaryDirectory() as reached:  # the way to other folders is closed to others
            observed = shutil.copytree(data.parent, Path(reached) / "data") / NAME
            for path, mode in ((Path(reached), 0o755), (observed.parent, 0o777), (observed, 0o600)):
                path.chmod(mode)
            (observed.parent / f"{NAME}.lock").chmod(0o666)
            looking = [sys.executable, "-c", SOMEBODY_ELSE, str(observed)]
            told = subprocess.run(looking, capture_output=True, text=True, check=False)
        assert "belongs to user 0 with mode 0600" in told.stdout and "chmod 600" in told.stdout, told
        return
    data.chmod(0)
    with pytest.raises(DiskError, match=f"belongs to user {os.geteuid()} with mode 0000"):
        Disk(data)


def test_a_place_where_no_data_can_be_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DiskError, match=r"cannot keep data here \(Not a directory|File exists"):
        Disk(tmp_path / "file" / NAME)


def test_a_flipped_byte_is_noticed_or_changes_nothing(data: Path, tmp_path: Path, figure: Figure) -> None:
    """Every 61st byte of file and log, and all of both headers; one bit of each, then all of it."""
    good = read(killed(data, tmp_path / "good"))
    counts = {"refused": 0, "without effect": 0}
    for name in (NAME, f"{NAME}-wal"):
        original = (data.parent / name).read_bytes()
        places = sorted({*range(128), *range(128, len(original), 61)})
        for number, place in enumerate(places):
            work = tmp_path / "work"
            shutil.rmtree(work, ignore_errors=True)
            copy = killed(data, work)
            flipped = bytearray(original)
            flipped[place] ^= 0xFF if number % 2 else 1 << (number // 2 % 8)
            (work / name).write_bytes(flipped)
            before = bytes_of(work)
            try:
                found = read(copy)
            except DiskError:
                counts["refused"] += 1
                assert bytes_of(work) == before
            else:
                assert found == good, f"byte {place} of {name} flipped: read wrongly"
                counts["without effect"] += 1
    assert counts["refused"] > 100
    figure("flipped bytes in file and log", ", ".join(f"{v} {k}" for k, v in counts.items()) + ", 0 read wrongly")


# -- formats ---------------------------------------------------------------------------------------------------------


def _older(number: int) -> dict[str, bytes]:
    return {f"c{n}": b'{"metadata":{"name":"c%d","uid":"u%d"}}' % (n, n) for n in range(number)}


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "killed"])
def test_the_first_release_s_data_opens_with_everything_in_it(tmp_path: Path, stopped: bool) -> None:
    connection = make_format_1(tmp_path / "old" / NAME, _older(300), revision=512)
    if stopped:
        connection.close()
    path = killed(tmp_path / "old" / NAME, tmp_path / "data")
    connection.close()
    for _ in range(2):
        revision, found = read(path)
        assert revision == 512
        assert {key[2]: value for key, value in found.items()} == {
            name: (number, raw) for number, (name, raw) in enumerate(_older(300).items(), 1)
        }
    with sqlite3.connect(path) as upgraded:
        assert upgraded.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert upgraded.execute("PRAGMA auto_vacuum").fetchone() == (2,), "space can be given back"
    upgraded.close()
    with writing(path) as writer:
        assert writer.put("new") == 513


def test_an_empty_database_of_a_first_start_that_died_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / NAME
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size
    assert read(path) == (0, {})
    assert read(path) == (0, {})


def test_a_damaged_older_file_is_refused_and_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / NAME
    make_format_1(path, _older(300), revision=512).close()
    damaged = bytearray(path.read_bytes())
    damaged[8192:12288] = bytes(4096)
    path.write_bytes(damaged)
    with pytest.raises(DiskError, match="damaged"):
        Disk(path)
    assert path.read_bytes() == bytes(damaged)


# -- size ------------------------------------------------------------------------------------------------------------


def test_churn_leaves_a_file_in_proportion_to_what_is_there(tmp_path: Path, figure: Figure) -> None:
    """23,000 writes are an hour of six a second: 50 objects of 2 KB live on, 2,000 of 20 KB come and go."""
    path = tmp_path / NAME
    with writing(path) as writer:
        largest = 0
        for number in range(20_000):
            writer.put(f"stays-{number % 50}", "x" * 2000)
            if number % 10 == 0:
                writer.put(f"goes-{number}", "y" * 20_000)
            if number % 10 == 5 and number > 10_000:
                writer.delete(f"goes-{(number - 10_005) * 2}")
            if number % 2500 == 0:
                assert writer.settle()
                largest = max(largest, _size(path))
        assert writer.settle()
        for number in range(0, 20_000, 10):
            if writer.store.get(Key("/configmaps", "demo", f"goes-{number}")) is not None:
                writer.delete(f"goes-{number}")
        assert writer.settle()
        writer.await_rest()
        kept = contents(writer.store)
        at_rest = _size(path)
    live = sum(len(raw) for _, raw in kept.values())
    assert at_rest < 9 * 2**20, "what is gone is given back, to 4 MiB of file and 4 of log"
    assert read(path)[1] == kept
    figure(
        "data file after 23,000 writes",
        f"{at_rest / 2**20:.1f} MiB for {live / 2**20:.2f} MiB of objects, {largest / 2**20:.0f} MiB on the way",
    )


def test_the_log_is_cut_off_at_rest_also_where_the_last_write_was_large_enough_to_move_it(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with writing(path) as writer:
        writer.put("large", "x" * (CHECKPOINT_AFTER_BYTES + 1))
        assert writer.settle()
        writer.await_rest()
        assert path.with_name(f"{NAME}-wal").stat().st_size == 0


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir() if not file.name.endswith("-shm"))

"""Backups of a data directory: one moment, whole, private; put back only where every byte fits."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.datafiles import Contents, bytes_of, contents, make_format_1, read, writing
from tests.cluster.test_encryption import CANARY, key_text
from tests.conftest import Figure

from syncline.assembly.inspection.archive import BUMP, ArchiveError, restore, take_backup
from syncline.cluster.storage.datafile import SCHEMA_VERSION
from syncline.cluster.storage.disk import Disk, DiskError
from syncline.cluster.storage.encryption import encryption_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NAME = "cluster.db"


def taken(data: Path, scratch: Path) -> bytes:
    out = io.BytesIO()
    take_backup(data, out, scratch, NOW)
    assert not [path for path in scratch.iterdir() if "backup" in path.name], "no copy is left"
    return out.getvalue()


def put_back(content: bytes, directory: Path) -> int:
    return restore(io.BytesIO(content), "the.backup", directory).revision


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    with writing(directory / NAME) as writer:
        for number in range(100):
            writer.put(f"c{number}", f"value {number} " * 30)
        writer.put("s", CANARY, resource="/secrets")
        writer.settle()
    (directory / "keys").mkdir()
    (directory / "keys" / "ca.key").write_text("private")
    (directory / "machines" / "node-1" / "root" / "etc").mkdir(parents=True)
    (directory / "machines" / "node-1" / "root" / "etc" / "motd").write_text("hello")
    (directory / "machines" / "node-1" / "root" / "etc" / "link").symlink_to("../../../../outside")
    (directory / "machines" / "node-1" / "root" / "empty").mkdir()
    (directory / "repositories").mkdir()
    (directory / "repositories" / "cache").write_text("fetched again")
    return directory


def test_a_restored_directory_is_the_one_that_was_backed_up(data: Path, tmp_path: Path) -> None:
    before = bytes_of(data)
    content = taken(data, tmp_path)
    assert bytes_of(data) == before | {f"{NAME}-wal": b""}, "a reader needs a log; it stays empty"
    revision = put_back(content, tmp_path / "new")
    assert revision == 101 + BUMP
    assert read(tmp_path / "new" / NAME) == (revision, read(data / NAME)[1])
    kept = {name for name in bytes_of(data) if not name.startswith("repositories")}
    assert set(bytes_of(tmp_path / "new")) == kept | {NAME} - {f"{NAME}-wal"}
    assert (tmp_path / "new" / "machines" / "node-1" / "root" / "etc" / "motd").read_text() == "hello"
    assert os.readlink(tmp_path / "new/machines/node-1/root/etc/link") == "../../../../outside"
    assert (tmp_path / "new" / "machines" / "node-1" / "root" / "empty").is_dir()
    for path in (tmp_path / "new").rglob("*"):
        assert path.is_symlink() or path.stat().st_mode & 0o077 == 0, f"{path} is for its owner alone"


def test_an_empty_directory_may_take_it_and_one_with_anything_may_not(data: Path, tmp_path: Path) -> None:
    content, empty = taken(data, tmp_path), tmp_path / "empty"
    empty.mkdir()
    put_back(content, empty)
    before = bytes_of(empty)
    with pytest.raises(ArchiveError, match=r"is not empty \(cluster.db, keys, machines\), and nothing is overwritten"):
        put_back(content, empty)
    assert bytes_of(empty) == before
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match="is no directory"):
        put_back(content, tmp_path / "file")


def test_a_backup_taken_while_it_is_written_is_of_one_moment(tmp_path: Path, figure: Figure) -> None:
    chance, moments = random.Random(1), {0: Contents()}
    with writing(tmp_path / "data" / NAME) as writer:
        backups = []
        for _ in range(12):
            for _ in range(chance.randint(20, 200)):
                writer.put(f"c{chance.randrange(60)}", "x" * chance.choice((10, 5000)))
                moments[writer.store.revision] = contents(writer.store)
            backups.append(taken(tmp_path / "data", tmp_path))  # the writer's thread is at work on the last ones
            writer.settle()
    for number, content in enumerate(backups):
        revision = put_back(content, tmp_path / str(number))
        assert read(tmp_path / str(number) / NAME)[1] == moments[revision - BUMP]
    figure("backups beside a writer", f"{len(backups)}, each of one moment, {len(moments)} writes")


def test_encrypted_secrets_stay_so_and_need_their_key_after_a_restore(tmp_path: Path) -> None:
    encryption = encryption_of(key_text(1, "mine"))
    with writing(tmp_path / "data" / NAME, encryption) as writer:
        writer.put("s", CANARY, resource="/secrets")
        writer.settle()
    content = taken(tmp_path / "data", tmp_path)
    assert CANARY.encode() not in gzip.decompress(content)
    put_back(content, tmp_path / "new")
    with pytest.raises(DiskError, match="is encrypted with key mine"):
        Disk(tmp_path / "new" / NAME)
    assert len(read(tmp_path / "new" / NAME, encryption)[1]) == 1


def test_an_older_format_is_backed_up_restored_and_then_opened(tmp_path: Path) -> None:
    make_format_1(tmp_path / "data" / NAME, {"a": b'{"metadata":{"name":"a"}}'}, revision=7).close()
    assert put_back(taken(tmp_path / "data", tmp_path), tmp_path / "new") == 7 + BUMP
    assert read(tmp_path / "new" / NAME)[0] == 7 + BUMP


def test_damaged_data_gives_no_backup(data: Path, tmp_path: Path) -> None:
    damaged = bytearray((data / NAME).read_bytes())
    damaged[5 * 4096 : 6 * 4096] = bytes(4096)
    (data / NAME).write_bytes(damaged)
    with pytest.raises(ArchiveError, match="damaged"):
        taken(data, tmp_path)
    with pytest.raises(ArchiveError, match="no cluster keeps its data here"):
        taken(tmp_path, tmp_path)


# -- what is no backup ------------------------------------------------------------------------------------------------


def test_no_byte_of_a_backup_can_change_unnoticed(data: Path, tmp_path: Path, figure: Figure) -> None:
    content, tried = taken(data, tmp_path), 0
    whole = gzip.decompress(content)
    good = bytes_of(tmp_path / "good") if put_back(content, tmp_path / "good") else {}
    for place in [*range(20), *range(20, len(content), max(1, len(content) // 150))]:
        for changed in (content[:place], content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]):
            target = tmp_path / f"t{tried}"
            tried += 1
            try:
                put_back(changed, target)
            except ArchiveError as refused:
                assert not target.exists() and "the.backup" in str(refused)
            else:  # gzip's header holds a time and a system; few other bytes have a second form that says the same
                assert (place < 10 or gzip.decompress(changed) == whole) and bytes_of(target) == good
    assert not [path for path in tmp_path.iterdir() if "restoring" in path.name]
    figure("damaged backups", f"{tried} cut or changed: none restored wrongly, nothing left behind")


def packed(entries: list[tuple[str, bytes]], **manifest: Any) -> bytes:
    """A backup made by hand. The manifest is right but for what is given."""
    files = {name: {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()} for name, body in entries}
    head = {"kind": "syncline backup", "format": 1, "syncline": "9.9", "taken": "then", "schema": SCHEMA_VERSION}
    head |= {"revision": 1, "objects": 1, "secretsInTheClear": 0, "sealed": False, "files": files} | manifest
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as zipped, tarfile.open(fileobj=zipped, mode="w|") as tar:
        for name, body in [("manifest.json", json.dumps(head).encode()), *entries]:
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "text": (lambda: b"hello", "damaged or no backup of Syncline"),
    "another tar": (lambda: packed([], kind="holiday photos"), "its manifest is of 'holiday photos'"),
    "a newer backup": (
        lambda: packed([], format=2),
        "by a newer Syncline .9.9, format 2/2; this one knows 1/2",
    ),
    "a newer data file": (lambda: packed([], schema=SCHEMA_VERSION + 1), "restore it with that version"),
    "a path to the outside": (lambda: packed([("../outside", b"x")]), "'../outside' is no place of a data directory"),
    "an absolute path": (lambda: packed([("/tmp/outside", b"x")]), "is no place of a data directory"),
    "another place": (lambda: packed([("repositories/x", b"x")]), "is no place of a data directory"),
    "a file too many": (lambda: packed([("keys/a", b"x")], files={}), "'keys/a' is not in its manifest"),
    "a file twice": (lambda: packed([("keys/a", b"x"), ("keys/a", b"x")]), "'keys/a' is not in its manifest, or there"),
    "a file too few": (
        lambda: packed([], files={"cluster.db": {"size": 1, "sha256": ""}}),
        "'cluster.db' is missing",
    ),
    "another content": (
        lambda: packed([("keys/a", b"x")], files={"keys/a": {"size": 1, "sha256": "00"}}),
        "'keys/a' differs from its checksum",
    ),
    "another size": (lambda: packed([("keys/a", b"x")], files={"keys/a": {"size": 2}}), "not as its manifest says"),
    "a data file of no kind": (lambda: packed([("cluster.db", b"x" * 100)]), "no database begins like that"),
    "a manifest without anything": (lambda: packed([], files=None), "damaged or no backup"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_backup_of_ours_is_refused_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    made, said = HOSTILE[case]
    with pytest.raises(ArchiveError, match=said):
        put_back(made(), tmp_path / "new")
    assert not list(tmp_path.iterdir())

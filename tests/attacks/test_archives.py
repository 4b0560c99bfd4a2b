"""Archives whose headers lie: each is refused in one sentence, before memory or time is spent."""

from __future__ import annotations

import resource
import tarfile
import time

import pytest
from tests.attacks.crafted import entry, tar_of

from syncline.sources.archive import ArchiveLimits, unpack
from syncline.sources.errors import Problem, SourceError

LARGE = 1 << 40


def header(changes: dict[int, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header with these bytes at these places and a checksum that is right; one block of content."""
    made = bytearray(entry("c/a", b"x" * 512, kind)[0].tobuf(tarfile.GNU_FORMAT))
    for at, given in {**changes, 148: b" " * 8}.items():
        made[at : at + len(given)] = given
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made) + b"x" * 512 + b"\0" * 1024


def number(value: int) -> bytes:
    return tarfile.itn(value, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined, no-any-return]


def sparse_by_pax(**more: str) -> bytes:
    given = {"GNU.sparse.numblocks": "1", "GNU.sparse.offset": "0", "GNU.sparse.numbytes": "1", "GNU.sparse.map": "0,1"}
    return tar_of(entry("c/a", pax_headers={**given, **more}), form=tarfile.PAX_FORMAT)


LONG_NAME = entry("././@LongLink", b"a\0", b"L")
LIES = {
    "a sparse file": (header({386: number(0) + number(512), 483: number(LARGE)}, b"S"), Problem.TOO_LARGE),
    "a sparse file of many exabytes": (header({483: number(1 << 62)}, b"S"), Problem.TOO_LARGE),
    "a sparse file by PAX": (sparse_by_pax(**{"GNU.sparse.size": str(LARGE)}), Problem.TOO_LARGE),
    "a sparse file by PAX 1.0": (
        sparse_by_pax(**{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(LARGE)}),
        Problem.TOO_LARGE,
    ),
    "a size below zero": (header({124: number(-1024)}), Problem.TOO_LARGE),
    "a size below zero by PAX": (
        tar_of(entry("c/a", pax_headers={"size": "-512"}), form=tarfile.PAX_FORMAT),
        Problem.TOO_LARGE,
    ),
    "a size beyond the archive": (header({124: number(LARGE)}), Problem.TOO_LARGE),
    "headers before headers": (tar_of(LONG_NAME)[:1024] * 3000 + tar_of(entry("c/a")), Problem.INVALID),
    "a name that is no text": (tar_of(entry("c/\udcff")), Problem.REFUSED),
    "a line break by PAX": (tar_of(entry("c/a\nb"), form=tarfile.PAX_FORMAT), Problem.REFUSED),
    "a file that is a folder": (tar_of(entry("c/a"), entry("c/a/b")), Problem.REFUSED),
    "a folder that is a file": (tar_of(entry("c/a/b"), entry("c/a")), Problem.REFUSED),
    "a file behind a link": (
        tar_of(entry("c/a", b"", tarfile.SYMTYPE, linkname="b"), entry("c/a/x")),
        Problem.REFUSED,
    ),
    "a block device": (tar_of(entry("c/a", b"", tarfile.BLKTYPE)), Problem.REFUSED),
    "a hard link by dots": (tar_of(entry("c/a", b"", tarfile.LNKTYPE, linkname="../x")), Problem.REFUSED),
    "a hard link to the root": (tar_of(entry("c/a", b"", tarfile.LNKTYPE, linkname="/etc/passwd")), Problem.REFUSED),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_archive_that_lies_is_refused_before_it_costs_anything(lie: str) -> None:
    content, problem = LIES[lie]
    used, memory = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError) as caught:
        unpack(content, "chart c 1.0.0")
    assert caught.value.problem is problem, str(caught.value)
    assert str(caught.value).isprintable() and str(caught.value).startswith("chart c 1.0.0: ")
    assert time.thread_time() - used < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 400_000, "kilobytes"


@pytest.mark.parametrize("backwards", [False, True])
def test_links_in_a_row_cost_no_more_than_the_files(backwards: bool) -> None:
    """One hop for each round over ten thousand names once took minutes."""
    row = [entry(f"c/l{n:03}", b"", tarfile.SYMTYPE, linkname=f"l{n + 1:03}") for n in range(500)]
    files = [entry(f"c/f{n}", b"") for n in range(9000)]
    used = time.thread_time()
    found = unpack(tar_of(*files, *(row[::-1] if backwards else row), entry("c/l500")), "x")
    assert time.thread_time() - used < 10
    assert found["c/l499"] == b"x", "the next to the file, however many there are"


def test_folders_that_hold_one_another_end_at_the_bound() -> None:
    links = [entry(f"c/d{n}/{half}", b"", tarfile.SYMTYPE, linkname=f"../d{n + 1}") for n in range(30) for half in "ab"]
    with pytest.raises(SourceError, match="through its links"):
        unpack(tar_of(*links, entry("c/d30/x")), "x", ArchiveLimits(files=5000))


def test_of_names_that_stand_twice_the_last_counts_and_case_is_kept() -> None:
    content = tar_of(entry("c/a", b"1"), entry("c/A", b"2"), entry("c/a", b"3"), entry("c/e\u0301"), entry("c/é"))
    assert unpack(content, "x") == {"c/a": b"3", "c/A": b"2", "c/e\u0301": b"x", "c/é": b"x"}

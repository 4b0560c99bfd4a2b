"""Folders of processes: nobody else's, removed at the end, and by the next process after a kill; and only then."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from syncline.base.scratch import PREFIX, Scratch, credentials_folder, memory_folder, named_in_memory, scratch, sweep

HOLDS = """
import sys
from pathlib import Path
from syncline.base.scratch import Scratch
held = Scratch(Path(sys.argv[1]))
(held.path / "secret").write_text("s3cret")
print(held.path, flush=True)
sys.stdin.read()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder below ``parent``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_folder_is_private_and_goes_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path) as folder:
        assert folder.parent == tmp_path and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "deep").mkdir(mode=0)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_others_use_is_not(tmp_path: Path) -> None:
    dead, left = holder(tmp_path)
    alive, used = holder(tmp_path)
    try:
        kill(dead)
        assert (left / "secret").exists()
        with scratch(tmp_path) as mine:
            assert not left.exists()
            assert (used / "secret").exists() and mine.exists()
    finally:
        kill(alive)
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_sweep_follows_no_link_and_takes_nothing_that_is_named_otherwise(tmp_path: Path) -> None:
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "place"
    for folder in (elsewhere, place / "syncline-other", place / f"{PREFIX}left"):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("")
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").write_text("")
    (place / f"{PREFIX}left" / "out").symlink_to(elsewhere)
    sweep(place)
    assert (elsewhere / "kept").exists() and (place / "syncline-other" / "kept").exists()
    assert {each.name for each in place.iterdir()} == {f"{PREFIX}file", f"{PREFIX}link", "syncline-other"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / f"{PREFIX}theirs"
    other.mkdir()
    os.chown(other, 12345, 12345)
    sweep(tmp_path)
    assert other.exists()


def test_a_fork_does_not_remove_what_its_parent_uses(tmp_path: Path) -> None:
    held = Scratch(tmp_path)
    child = os.fork()
    if child == 0:
        held.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.exists()
    held.close()
    assert not held.path.exists()


def test_keys_for_libraries_have_no_name_on_a_disk() -> None:
    with named_in_memory("s3cret") as name:
        assert Path(name).read_text() == "s3cret"
        if sys.platform == "linux":
            assert "memfd" in os.readlink(name)


@pytest.mark.skipif(memory_folder() is None, reason="this machine has no files in memory")
def test_credentials_that_programs_read_from_files_are_in_memory() -> None:
    folder = credentials_folder()
    assert folder.parent == memory_folder() and stat.S_IMODE(folder.stat().st_mode) == 0o700

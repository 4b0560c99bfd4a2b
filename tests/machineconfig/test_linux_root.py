"""Files below a root: nothing that lies there, and nothing that a config says, leads out of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from syncline.hosts.linuxroot import DRAFT, LinuxRoot
from syncline.machineconfig.agent.host import HostError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root, with a file that nobody may touch."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "passwd").write_text("secret")
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> LinuxRoot:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "var").mkdir()
    return LinuxRoot(tmp_path / "root")


def _listing(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in folder.iterdir()}


def _two_links(etc: Path) -> None:
    (etc / "b").symlink_to("../..")
    (etc / "a").symlink_to("b/outside")


WAYS: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "dots": (lambda etc, out: None, "/etc/../../outside/passwd"),
    "many dots": (lambda etc, out: None, "/../../../../../../outside/passwd"),
    "a link with dots": (lambda etc, out: (etc / "a").symlink_to("../../../outside"), "/etc/a/passwd"),
    "an absolute link": (lambda etc, out: (etc / "a").symlink_to(out), "/etc/a/passwd"),
    "a link of the file itself": (lambda etc, out: (etc / "a").symlink_to(out / "passwd"), "/etc/a"),
    "a link to a link": (lambda etc, out: _two_links(etc), "/etc/a/passwd"),
    "a link to the true root": (lambda etc, out: (etc / "a").symlink_to("/"), f"/etc/a{Path(__file__)}"),
    "a link behind dots": (lambda etc, out: (etc / "a").symlink_to(out), "/etc/a/../outside/passwd"),
    "a link to itself": (lambda etc, out: (etc / "a").symlink_to("a"), "/etc/a/passwd"),
    "the draft": (lambda etc, out: (etc / DRAFT).symlink_to(out / "passwd"), "/etc/passwd"),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_path_and_no_link_leads_out(way: str, root: LinuxRoot, outside: Path) -> None:
    lay, path = WAYS[way]
    lay(root.root / "etc", outside)
    before, mine = _listing(outside), Path(__file__).read_text()
    for attempt in (
        lambda: root.write(path, b"evil"),
        lambda: root.link(path, "/dev/null"),
        lambda: root.copy(path, "/etc/stolen"),
        lambda: root.make_directories(f"{path}.d/deep"),
        lambda: root.remove(path),
        lambda: root.write(path, b"evil"),
        lambda: root.copy("/etc", f"{path}/copied"),
        lambda: root.remove_all(path),
        lambda: root.remove_all(os.path.dirname(path)),
    ):
        with contextlib.suppress(HostError):
            assert root.read(path) in (b"evil", b"")
        with contextlib.suppress(HostError):
            attempt()
    assert _listing(outside) == before
    assert Path(__file__).read_text() == mine
    assert sorted(each.name for each in outside.parent.iterdir()) == ["outside", "root"]
    assert not (root.root / "etc" / "stolen").exists() or (root.root / "etc" / "stolen").read_bytes() in (b"evil", b"")


def test_links_are_followed_as_in_a_chroot(root: LinuxRoot) -> None:
    (root.root / "etc" / "motd").symlink_to("../../../../etc/passwd")
    (root.root / "home").symlink_to("/var/home")
    root.write("/etc/passwd", b"root:x:0:0::/root:/bin/sh\n")
    root.make_directories("/var/home")
    assert root.read("/etc/motd") == b"root:x:0:0::/root:/bin/sh\n"
    root.write("/home/core/.ssh/keys", b"key", mode=0o600, parents=0o700)
    assert (root.root / "var/home/core/.ssh/keys").read_bytes() == b"key"
    assert (root.root / "var/home/core").stat().st_mode & 0o777 == 0o700
    root.write("/etc/motd", b"hello")
    assert not (root.root / "etc/motd").is_symlink()
    assert root.read("/etc/passwd").startswith(b"root")


@pytest.mark.parametrize("name", ["etc", "app", "file"])
def test_a_directory_that_becomes_a_link_during_a_write_leads_nowhere(
    name: str, root: LinuxRoot, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every opening of ``name`` it has just been exchanged for a link to the outside."""
    root.make_directories("/etc/app")
    really, place = os.open, {"etc": "etc", "app": "etc/app", "file": "etc/app/file"}[name]

    def exchanging(path: object, *rest: object, **more: object) -> int:
        here = root.root / place
        if path in (name, DRAFT) and not here.is_symlink():
            if here.exists():
                here.rename(root.root / "var" / "moved")
            here.symlink_to(outside)
        return really(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", exchanging)
    for attempt in (
        lambda: root.write("/etc/app/passwd", b"evil"),
        lambda: root.write("/etc/app/file", b"evil"),
        lambda: root.make_directories("/etc/app/deep/er"),
    ):
        with contextlib.suppress(HostError):
            attempt()
    monkeypatch.undo()
    assert _listing(outside) == {"passwd": "secret"}


DIES = """
import os, sys
from pathlib import Path
from syncline.hosts.linuxroot import LinuxRoot
os.rename = lambda *_, **__: os._exit(9)
LinuxRoot(Path(sys.argv[1])).write("/etc/motd", b"new")
"""


def test_a_death_before_the_rename_leaves_the_old_file_and_the_next_write_takes_the_draft(root: LinuxRoot) -> None:
    root.write("/etc/motd", b"old", mode=0o600)
    died = subprocess.run([sys.executable, "-c", DIES, str(root.root)], check=False)
    assert died.returncode == 9
    assert root.read("/etc/motd") == b"old"
    assert (root.root / "etc" / DRAFT).read_bytes() == b"new"
    root.write("/etc/motd", b"newer")
    assert root.read("/etc/motd") == b"newer"
    assert root.names("/etc") == ["motd"]


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (lambda root: root.read("/etc/none"), "open /etc/none: no such file or directory"),
        (lambda root: root.read("/etc"), "read /etc: is a directory"),
        (lambda root: root.read("/var/pipe"), "read /var/pipe: not a regular file"),
        (lambda root: root.stat("/etc/file/below"), "lstat /etc/file/below: not a directory"),
        (lambda root: root.write("/etc/file/below", b""), "mkdir /etc/file: not a directory"),
        (lambda root: root.write("/var", b""), "rename /var: file exists"),
        (lambda root: root.remove("/etc"), "remove /etc: directory not empty"),
        (lambda root: root.remove("/etc/none"), "remove /etc/none: no such file or directory"),
        (lambda root: root.copy("/etc/none", "/var/x"), "cp /etc/none: no such file or directory"),
        (lambda root: root.link("/none/a", "/dev/null"), "symlink /dev/null /none/a: no such file or directory"),
        (lambda root: root.read("/etc/loop"), "open /etc/loop: too many levels of symbolic links"),
        (lambda root: root.write("/etc/\0", b""), "open /etc/\0: embedded null byte"),
    ],
)
def test_what_cannot_be_done_is_told_in_the_words_of_the_system(
    attempt: Callable[[LinuxRoot], object], told: str, root: LinuxRoot
) -> None:
    root.write("/etc/file", b"")
    os.mkfifo(root.root / "var" / "pipe")
    (root.root / "etc" / "loop").symlink_to("loop")
    with pytest.raises(HostError) as error:
        attempt(root)
    assert str(error.value) == told


def test_a_copy_keeps_modes_links_and_what_lies_below(root: LinuxRoot) -> None:
    root.write("/etc/app/run", b"#!/bin/sh", mode=0o755)
    root.link("/etc/app/link", "../motd")
    root.copy("/etc/app", "/var/kept/app")
    assert root.read("/var/kept/app/run") == b"#!/bin/sh"
    ran, link = root.stat("/var/kept/app/run"), root.stat("/var/kept/app/link")
    assert ran is not None and ran.mode == 0o755
    assert link is not None and link.target == "../motd"


def test_entries_of_proc_are_read_as_they_are_on_a_running_machine() -> None:
    """They refuse to be asked for 64 MiB at once, and a machine without a boot id would reboot for ever."""
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    if not boot_id.exists():
        pytest.skip("this is no Linux")
    assert LinuxRoot(Path("/")).read(str(boot_id)) == boot_id.read_bytes()
    assert LinuxRoot(Path("/")).read("/proc/cmdline") == Path("/proc/cmdline").read_bytes()


@pytest.mark.parametrize("owner", [(1 << 40, 0), (0, -2)])
def test_an_owner_that_no_system_has_is_an_error_of_the_host(owner: tuple[int, int], tmp_path: Path) -> None:
    """Only root gives files away; where we are not, that is noted."""
    root = LinuxRoot(tmp_path)
    try:
        root.write("/a", b"x", owner=owner)
    except HostError as error:
        assert error.path == "/a" and not (tmp_path / "a").exists()
    else:
        assert root.notes


def test_a_path_that_no_system_has_has_no_stamp(tmp_path: Path) -> None:
    assert LinuxRoot(tmp_path).stamp("/etc/\0") == ()

"""People of a machine against its agent, which writes as root where they may write too."""

from __future__ import annotations

import contextlib
import inspect
import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from syncline.hosts.linuxroot import DRAFT, LinuxRoot
from syncline.machineconfig.agent.host import HostError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of other users")
CORE, OTHER = 1234, 1235
KEYS = "/home/core/.ssh/authorized_keys.d/ignition"


@pytest.fixture
def root(tmp_path: Path) -> LinuxRoot:
    """A machine with a user; what root alone may read and write lies in /etc."""
    for folder in ("etc/profile.d", "root/.ssh", "home/core", "home/other/own", "var"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc" / "shadow").write_text("secret")
    if os.geteuid() == 0:
        os.chown(tmp_path / "home/core", CORE, CORE)
        for folder in ("home/other", "home/other/own"):
            os.chown(tmp_path / folder, OTHER, OTHER)
    return LinuxRoot(tmp_path)


def link(root: LinuxRoot, path: str, target: str, user: int = CORE) -> None:
    (root.root / path).symlink_to(target)
    os.lchown(root.root / path, user, user)


def observed(root: LinuxRoot) -> dict[str, tuple[int, int, str]]:
    """All that is not the user's: owner, mode and content."""
    found = {}
    for each in sorted((root.root / "etc").rglob("*")) + sorted((root.root / "root").rglob("*")):
        info = each.lstat()
        found[str(each)] = (info.st_uid, info.st_mode, each.read_text() if each.is_file() else "")
    return found


LINKS: dict[str, list[tuple[str, str]]] = {
    "a folder of links": [("home/core/.ssh", "/etc")],
    "a folder of links by dots": [("home/core/.ssh", "../../etc")],
    "a folder below": [("home/core/.ssh", "/home/core/x"), ("home/core/x", "/root/.ssh")],
    "a folder of another user": [("home/core/.ssh", "/home/other/own")],
    "dots behind a link": [("home/core/.ssh", "/etc/profile.d/..")],
    "the root": [("home/core/.ssh", "/")],
}


@needs_root
@pytest.mark.parametrize("links", LINKS)
def test_no_link_of_a_user_brings_root_where_the_user_may_not_write(links: str, root: LinuxRoot) -> None:
    for path, target in LINKS[links]:
        link(root, path, target)
    before = observed(root)
    folder = "/home/core/.ssh"
    for attempt in (
        lambda: root.write(KEYS, b"key", owner=(CORE, CORE), parents=0o700),
        lambda: root.write(f"{folder}/profile.d/x.sh", b"id", owner=(CORE, CORE)),
        lambda: root.make_directories(f"{folder}/new/er"),
        lambda: root.make_directories(f"{folder}/profile.d"),
        lambda: root.remove(f"{folder}/shadow"),
        lambda: root.remove_all(f"{folder}/profile.d"),
        lambda: root.copy(f"{folder}/shadow", "/home/core/stolen"),
        lambda: root.copy("/etc/shadow", f"{folder}/copied"),
        lambda: root.link(f"{folder}/l", "/etc/shadow"),
        lambda: root.give(f"{folder}/profile.d", CORE, CORE),
        lambda: root.read(f"{folder}/shadow"),
    ):
        with pytest.raises(HostError):
            attempt()
    assert observed(root) == before
    assert sorted(os.listdir(root.root / "home/other/own")) == []


@needs_root
def test_links_of_root_and_of_users_to_their_own_are_followed(root: LinuxRoot) -> None:
    (root.root / "var" / "core").symlink_to("/home/core")
    (root.root / "home/core/real").mkdir()
    os.chown(root.root / "home/core/real", CORE, CORE)
    link(root, "home/core/.ssh", "real")
    root.write("/var/core/.ssh/keys", b"key", owner=(CORE, CORE))
    assert (root.root / "home/core/real/keys").read_bytes() == b"key"
    link(root, "var/way", "/etc", user=0)
    root.write("/var/way/motd", b"hello")
    assert (root.root / "etc/motd").read_bytes() == b"hello"


def fifo(place: Path) -> None:
    os.mkfifo(place)


def listening(place: Path) -> None:
    here = os.getcwd()
    os.chdir(place.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(here)


def privileged(place: Path) -> None:
    place.write_text("old")
    place.chmod(0o6777)


def hard_link(place: Path) -> None:
    os.link(place.parents[1] / "etc" / "shadow", place)


IN_PLACE: dict[str, Callable[[Path], None]] = {
    "a pipe": fifo,
    "a socket": listening,
    "a program with rights": privileged,
    "a hard link": hard_link,
    "a link to nothing": lambda place: place.symlink_to("/nowhere"),
    "a link to a device": lambda place: place.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("what", IN_PLACE)
def test_what_lies_in_a_files_place_is_replaced_and_never_opened(what: str, root: LinuxRoot) -> None:
    place = root.root / "var" / "file"
    IN_PLACE[what](place)
    with contextlib.suppress(HostError):
        assert root.read("/var/file") in (b"old", b"secret"), "a file, read at once"
    root.write("/var/file", b"new", mode=0o640)
    info = place.lstat()
    assert (stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), info.st_nlink) == (stat.S_IFREG, 0o640, 1)
    assert (root.root / "etc" / "shadow").read_text() == "secret"


DRAFTS: dict[str, Callable[[Path], None]] = {
    "a folder": lambda place: place.mkdir(),
    "a folder with files": lambda place: (place / "a").mkdir(parents=True),
    "a pipe": fifo,
    "a link": lambda place: place.symlink_to("../etc/shadow"),
    "a link to a folder": lambda place: place.symlink_to("../etc"),
    "a hard link": hard_link,
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_nothing_in_the_drafts_place_keeps_the_agent_from_writing(draft: str, root: LinuxRoot) -> None:
    DRAFTS[draft](root.root / "var" / DRAFT)
    root.write("/var/file", b"new")
    assert (root.root / "var/file").read_bytes() == b"new"
    assert (root.root / "etc" / "shadow").read_text() == "secret"
    assert sorted(os.listdir(root.root / "var")) == ["file"]


def test_folders_without_end_are_an_error_of_the_host_and_not_of_the_agent(root: LinuxRoot) -> None:
    """With a low bound of recursion: what is really too deep for Python would stay on the disk of a test that dies."""
    (root.root / "var/deep" / "/".join("d" * 150)).mkdir(parents=True)
    with pytest.raises(HostError, match="directories deep"):
        root.copy("/var/deep", "/var/copy")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        with pytest.raises(HostError, match="nested too deep"):
            root.remove_all("/var/deep")
    finally:
        sys.setrecursionlimit(limit)


PATHS = ["/..", "/../../etc/shadow", "/etc/\x00", "/" + "a/" * 5000, "/etc/" + "a" * 300, "/proc/../../x/../../etc", ""]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_of_a_config_leaves_the_root_or_ends_the_agent(path: str, root: LinuxRoot) -> None:
    before = sorted(os.listdir(root.root.parent))
    for attempt in (lambda: root.write(path, b"x"), lambda: root.remove_all(path), lambda: root.make_directories(path)):
        with contextlib.suppress(HostError):
            attempt()
    assert sorted(os.listdir(root.root.parent)) == before

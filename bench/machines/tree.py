"""Debian trees made with debootstrap, kept in the user's cache so that they are made once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
MINIMAL = ("systemd", "systemd-sysv", "cron", "openssh-server", "systemd-timesyncd")
"""Beyond ``--variant=minbase``: an init, and services with units, sockets, templates and files of configuration."""
MACHINE = (*MINIMAL, "dbus", "udev", "linux-image-cloud-amd64", "python3", "ca-certificates", "iproute2", "kmod")
MAX_S = 900
TREE_VARIABLE = "SYNCLINE_DEBIAN_TREE"


class NoTree(Exception):
    """Why there is no tree, and how to make one."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "syncline"


def cached(name: str) -> Path | None:
    """A tree that was made whole; None: there is none."""
    tree = cache() / f"debian-{SUITE}-{name}"
    return tree if (tree / ".whole").exists() else None


def made(name: str, packages: tuple[str, ...]) -> Path:
    """The tree ``name``; about a minute and 500 MB where it is not there yet. Raises NoTree."""
    found = cached(name)
    if found is not None:
        return found
    if os.geteuid() != 0:
        raise NoTree("debootstrap makes files of other owners: run as root")
    if shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        raise NoTree("debootstrap is not here: apt-get install debootstrap")
    tree = cache() / f"debian-{SUITE}-{name}"
    shutil.rmtree(tree, ignore_errors=True)
    tree.parent.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, str(tree), MIRROR]
    done = subprocess.run(["nice", "-n", "15", *command], capture_output=True, text=True, timeout=MAX_S, check=False)
    if done.returncode != 0:
        shutil.rmtree(tree, ignore_errors=True)
        raise NoTree(f"debootstrap failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    for package in (tree / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    (tree / ".whole").touch()
    return tree


def tree_for_tests() -> Path:
    """What tests read: $SYNCLINE_DEBIAN_TREE, else the cached minimal tree. Raises NoTree; nothing is downloaded."""
    named = os.environ.get(TREE_VARIABLE)
    if named:
        if not (Path(named) / "var/lib/dpkg/status").is_file():
            raise NoTree(f"{TREE_VARIABLE}={named} is no Debian tree")
        return Path(named)
    found = cached("minimal") or cached("machine")
    if found is None:
        raise NoTree(f"there is no Debian tree: `python3 -m bench.machines tree` makes one, or set {TREE_VARIABLE}")
    return found

"""The Linux host on a real Debian: its own units, users and files. A tree is read, never downloaded, by these tests.

``python3 -m bench.machines tree`` makes one in the user's cache (debootstrap, as root, about a minute);
``SYNCLINE_DEBIAN_TREE`` names another. Each test works on a copy of the few megabytes that it needs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from bench.machines.tree import NoTree, tree_for_tests

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.hosts.nodeagent import apply_config, handle_now
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.disk import drift_of
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.handler import HostHandler
from syncline.machineconfig.agent.steps import SetUsers, WriteFiles
from syncline.machineconfig.configs.parsing import ConfigError

PARTS = ("etc", "usr/lib/systemd/system", "usr/lib/systemd/system-preset", "usr/lib/os-release", "var/lib/dpkg/status")
OURS = "etc/machine-config-daemon"
KEY = "ssh-ed25519 AAAA me"


@pytest.fixture(scope="module")
def debian() -> Path:
    if os.geteuid() != 0:
        pytest.skip("files of a Debian tree have other owners: run as root")
    try:
        return tree_for_tests()
    except NoTree as error:
        pytest.skip(str(error))


def _copy(debian: Path, to: Path) -> Path:
    for part in PARTS:
        (to / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", str(debian / part), str(to / part)], check=True)
    (to / "home").mkdir()
    shutil.rmtree(to / "etc/init.d", ignore_errors=True)  # systemctl tells update-rc.d, which is not in the copy
    if (debian / "lib").is_symlink():
        (to / "lib").symlink_to("usr/lib")
    return to


@pytest.fixture
def root(debian: Path, tmp_path: Path) -> Path:
    return _copy(debian, tmp_path / "root")


def entries(root: Path) -> dict[str, tuple[Any, ...]]:
    """All but what the agent keeps for itself, and homes: kind and mode, owner, content or target."""
    found: dict[str, tuple[Any, ...]] = {}
    for place, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(place) / name
            shown = path.relative_to(root).as_posix()
            if shown.startswith((OURS, "home/")):
                continue
            there = path.lstat()
            held: Any = None
            if stat.S_ISLNK(there.st_mode):
                held = os.readlink(path).replace("/lib/systemd/", "/usr/lib/systemd/").replace("/usr/usr", "/usr")
            elif stat.S_ISREG(there.st_mode):
                held = path.read_bytes()
            found[shown] = (oct(there.st_mode), there.st_uid, there.st_gid, held)
    return found


def config(name: str, files: dict[str, Any] | None = None, **more: Any) -> Obj:
    listed = []
    for path, given in (files or {}).items():
        text, extra = given if isinstance(given, tuple) else (given, {})
        listed.append({"path": path, "contents": {"source": f"data:,{quote(text)}"}} | extra)
    ignition = {"ignition": {"version": "3.4.0"}, "storage": {"files": listed}, **more}
    return {"kind": "MachineConfig", "metadata": {"name": name}, "spec": {"config": ignition}}


def machine(root: Path) -> tuple[LinuxHost, LinuxHosts]:
    host = LinuxHost(root, SystemClock(), offline=True)
    return host, LinuxHosts("edge", host, in_place=True)


# -- units ------------------------------------------------------------------------------------------------------------


def _links(root: Path) -> dict[str, str]:
    top = root / "etc/systemd/system"
    found = {each.relative_to(root).as_posix(): os.readlink(each) for each in top.rglob("*") if each.is_symlink()}
    return {
        path: target.replace("/lib/systemd", "/usr/lib/systemd").replace("/usr/usr", "/usr")
        for path, target in found.items()
    }


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="systemd is not here")
def test_every_unit_of_debian_is_asked_enabled_preset_and_disabled_as_by_systemctl(
    debian: Path, tmp_path: Path
) -> None:
    ours, theirs = _copy(debian, tmp_path / "ours"), _copy(debian, tmp_path / "theirs")
    host = LinuxHost(ours, SystemClock())
    shipped = sorted(each.name for each in (ours / "usr/lib/systemd/system").iterdir() if not each.is_dir())
    names = [name for name in shipped if name in host.unit_files()]
    assert len(names) > 80

    def both(verb: str, *units: str) -> tuple[Any, str, subprocess.CompletedProcess[str]]:
        want = subprocess.run(
            ["systemctl", f"--root={theirs}", verb, *units], capture_output=True, text=True, check=False
        )
        got = host.run(["systemctl", verb, *units])
        assert _links(ours) == _links(theirs), (verb, units, got, want.stderr)
        return got, got.output, want

    _, output, want = both("is-enabled", *names)
    assert dict(zip(names, output.split())) == dict(zip(names, want.stdout.split()))
    installable = [name for name, state in zip(names, output.split()) if state in ("enabled", "disabled", "indirect")]
    assert len(installable) > 20
    for verb in ("disable", "enable", "preset"):
        for name in installable:
            got, _, want = both(verb, name)
            assert bool(got.code) == bool(want.returncode), (verb, name, got, want.stderr)
    _, output, want = both("is-enabled", *names)
    assert output.split() == want.stdout.split()


UNITS = [
    {
        "name": "hello.service",
        "enabled": True,
        "contents": "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n",
    },
    {"name": "cron.service", "enabled": False, "dropins": [{"name": "10.conf", "contents": "[Service]\nNice=7\n"}]},
    {"name": "fstrim.timer", "mask": True},
    {"name": "getty@tty5.service", "enabled": True},
]


def test_units_drop_ins_masks_and_instances_are_brought_and_taken_back(root: Path) -> None:
    before = entries(root)
    host, hosts = machine(root)
    apply_config(hosts, config("a", systemd={"units": UNITS}))
    system = root / "etc/systemd/system"
    assert os.readlink(system / "multi-user.target.wants/hello.service") == "/etc/systemd/system/hello.service"
    assert not (system / "multi-user.target.wants/cron.service").is_symlink()
    assert (system / "cron.service.d/10.conf").read_text() == "[Service]\nNice=7\n"
    assert os.readlink(system / "fstrim.timer") == "/dev/null"
    assert host.run(["systemctl", "is-enabled", "fstrim.timer"]).output == "masked"
    assert drift_of(host, config("a", systemd={"units": UNITS})) is None
    apply_config(hosts, config("b"))
    after = entries(root)
    assert {path for path in before if before[path] != after.get(path)} == set()
    # What upstream leaves, too: folders, and the link of an instance that a preset has nothing against.
    assert {path for path in after if path not in before} <= {
        "etc/systemd/system/cron.service.d",
        "etc/systemd/system/getty.target.wants/getty@tty5.service",
    }


# -- files ------------------------------------------------------------------------------------------------------------

OWNED, UNOWNED, LINK = "/etc/crontab", "/etc/ssh/sshd_config", "/etc/os-release"
FILES: dict[str, Any] = {
    OWNED: "mine\n",
    UNOWNED: ("mine\n", {"mode": 0o640, "group": {"name": "adm"}}),
    LINK: "ID=other\n",
    "/etc/new/deep/file": ("new", {"mode": 0o600}),
    "/usr/local/bin/tool": ("#!/bin/sh\n", {"mode": 0o755}),
}


def test_modes_and_owners_are_those_that_the_tree_knows_by_name(root: Path) -> None:
    _, hosts = machine(root)
    apply_config(
        hosts,
        config("a", {"/etc/x": ("", {"mode": 0o4750, "user": {"name": "www-data"}, "group": {"name": "shadow"}})}),
    )
    there = (root / "etc/x").stat()
    known = {line.split(":")[0]: int(line.split(":")[2]) for line in (root / "etc/passwd").read_text().splitlines()}
    groups = {line.split(":")[0]: int(line.split(":")[2]) for line in (root / "etc/group").read_text().splitlines()}
    assert (there.st_uid, there.st_gid) == (known["www-data"], groups["shadow"])
    assert there.st_mode & 0o7777 == 0o750  # setuid is left out, as upstream's daemon does
    with pytest.raises(
        UpdateError, match='ownership for file "/etc/y": failed to retrieve UserID for username: nobodyish'
    ):
        apply_config(hosts, config("b", {"/etc/y": ("", {"user": {"name": "nobodyish"}})}))


def test_what_debian_ships_is_kept_and_comes_back_whoever_owns_it(root: Path) -> None:
    """``sshd_config`` belongs to no package: its maintainer script makes it."""
    before = entries(root)
    host, hosts = machine(root)
    for text in ("first", "second", "second"):  # what is kept is Debian's, however often ours is written
        changed = {
            path: (f"{text}\n", given[1]) if isinstance(given, tuple) else f"{text}\n" for path, given in FILES.items()
        }
        apply_config(hosts, config(text, changed))
    assert (root / "etc/ssh/sshd_config").read_text() == "second\n"
    assert (root / "etc/os-release").is_symlink() is False
    assert drift_of(host, config("second", changed)) is None
    apply_config(hosts, config("none"))
    after = entries(root)
    assert {path: (before[path], after.get(path)) for path in before if before[path] != after.get(path)} == {}
    assert sorted(path for path in after if path not in before and after[path][3] is not None) == []


def test_a_file_that_an_image_had_put_there_for_us_goes_with_its_config(root: Path) -> None:
    (root / "etc/ours").write_text("same")
    _, hosts = machine(root)
    apply_config(hosts, config("a", {"/etc/ours": "same"}))
    apply_config(hosts, config("b"))
    assert not (root / "etc/ours").exists()


def test_an_update_that_is_undone_leaves_the_tree_as_it_was(root: Path) -> None:
    _, hosts = machine(root)
    old, new = config("old", {OWNED: "one\n"}), config("new", {**FILES, OWNED: "two\n"}, systemd={"units": UNITS[:2]})
    apply_config(hosts, old)
    before = entries(root)
    handler = HostHandler(hosts)
    handle_now(handler, WriteFiles("edge", old, new, False, "an update"))
    handle_now(handler, WriteFiles("edge", new, old, False, "it failed"))
    after = entries(root)
    lost = {path for path in before if before[path] != after.get(path)}
    assert lost <= {"etc/systemd/system/multi-user.target.wants/cron.service"}  # disabled; nobody says it was enabled
    assert [path for path in after if path not in before and after[path][3] is not None] == []


def test_an_update_that_is_done_again_after_a_death_takes_away_nothing_of_debian(root: Path) -> None:
    """Files that came back, a unit of the administrator that did, and all of it a second time round."""
    (root / "etc/systemd/system/own.service").write_text("[Service]\nExecStart=/own\n")
    before = entries(root)
    units = [{"name": "own.service", "contents": "[Service]\nExecStart=/other\n"}]
    old, new = config("old", FILES, systemd={"units": units}), config("new")
    _, hosts = machine(root)
    handler = HostHandler(hosts)
    for _ in range(2):
        apply_config(hosts, old)
        for _ in range(3):
            handle_now(handler, WriteFiles("edge", old, new, False, "again"))
        after = entries(root)
        assert {path for path in before if before[path] != after.get(path)} == set()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.write_text("theirs"), 'content mismatch for file "/etc/new"'),
        (lambda path: path.chmod(0o777), 'mode mismatch for file: "/etc/new"'),
        (lambda path: path.unlink(), 'could not stat file "/etc/new"'),
        (lambda path: (path.unlink(), path.symlink_to("/etc/passwd")), 'mode mismatch for file: "/etc/new"'),
        (lambda path: (path.unlink(), os.mkfifo(path)), 'mode mismatch for file: "/etc/new"'),
        (
            lambda path: (path.unlink(), os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(1, 3))),
            "mode mismatch for file",
        ),
        (lambda path: (path.unlink(), path.mkdir()), 'mode mismatch for file: "/etc/new"'),
    ],
    ids=["content", "mode", "gone", "link", "fifo", "device", "folder"],
)
def test_drift_is_told_whatever_has_taken_a_files_place(root: Path, spoil: Callable[[Path], object], told: str) -> None:
    host, hosts = machine(root)
    wanted = config("a", {"/etc/new": "ours"})
    apply_config(hosts, wanted)
    assert drift_of(host, wanted) is None
    spoil(root / "etc/new")
    drift = drift_of(host, wanted)
    assert drift is not None and told in drift.text


# -- users ------------------------------------------------------------------------------------------------------------


def test_keys_and_password_of_core_are_set_where_there_is_a_core_and_told_where_there_is_none(root: Path) -> None:
    users = {"users": [{"name": "core", "sshAuthorizedKeys": [KEY], "passwordHash": "$6$x"}]}
    host, hosts = machine(root)
    handler = HostHandler(hosts)
    step = SetUsers("edge", config("old"), config("new", passwd=users), "an update")
    subprocess.run(
        ["sed", "-i", "/^core:/d", *(str(root / "etc" / name) for name in ("passwd", "group", "shadow"))], check=True
    )
    handle_now(handler, step)
    assert not (root / "home/core").exists()
    assert any("core" in note for note in host.notes)
    for name, line in (
        ("passwd", "core:x:1000:1000::/home/core:/bin/bash"),
        ("group", "core:x:1000:"),
        ("shadow", "core:!:1::::::"),
    ):
        with (root / "etc" / name).open("a") as file:
            file.write(f"{line}\n")
    handle_now(handler, step)
    keys = root / "home/core/.ssh/authorized_keys.d/ignition"
    assert keys.read_text() == f"{KEY}\n"
    assert (keys.stat().st_uid, keys.stat().st_mode & 0o777) == (1000, 0o600)
    assert (keys.parent.stat().st_uid, keys.parent.stat().st_mode & 0o777) == (1000, 0o700)
    assert "core:$6$x:" in (root / "etc/shadow").read_text()
    assert (root / "etc/shadow").stat().st_mode & 0o777 == 0o640


# -- what is not ours to write ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/etc/../../outside/x", "/etc/out/x", "/lib/../../outside/x", "/etc/absolute/x"])
def test_no_config_leads_out_of_the_tree(root: Path, path: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "etc/out").symlink_to("../../outside")
    (root / "etc/absolute").symlink_to(outside)
    _, hosts = machine(root)
    with contextlib.suppress(UpdateError, ConfigError):  # or it was written inside, as in a chroot
        apply_config(hosts, config("a", {path: "x"}))
    assert list(outside.iterdir()) == []


def test_links_into_the_tree_are_followed_as_the_running_system_would(root: Path) -> None:
    _, hosts = machine(root)
    apply_config(hosts, config("a", {"/lib/systemd/system/x.service": "[Service]\nExecStart=/x\n"}))
    assert (root / "usr/lib/systemd/system/x.service").is_file()

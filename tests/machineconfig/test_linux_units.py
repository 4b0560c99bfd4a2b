"""Units of a system that does not run: the same links, states and codes as ``systemctl --root``."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import LinuxHost

SYSTEM = "etc/systemd/system"
SHIPPED = "usr/lib/systemd/system"
UNIT = "[Service]\nExecStart=/bin/true\n"
TREE = {
    f"{SYSTEM}/a.service": f"{UNIT}[Install]\nWantedBy=multi-user.target other.target\nAlias=al.service\n",
    f"{SYSTEM}/static.service": UNIT,
    f"{SHIPPED}/b.service": f"{UNIT}[Install]\nRequiredBy=a.service\nAlso=c.socket\n",
    f"{SHIPPED}/c.socket": "[Socket]\nListenStream=1\n[Install]\nWantedBy=sockets.target\n",
    f"{SHIPPED}/d.service": f"{UNIT}[Install]\nWantedBy=x.target\n",
    f"{SYSTEM}/d.service.d/10.conf": "[Install]\nWantedBy=y.target\n",
    f"{SHIPPED}/getty@.service": f"{UNIT}[Install]\nWantedBy=getty.target\nDefaultInstance=tty1\n",
    f"{SHIPPED}/multi-user.target": "[Unit]\n",
    "usr/lib/systemd/system-preset/90-default.preset": "enable a.service\ndisable d*\ndisable *\n",
}
COMMANDS = [
    *(f"is-enabled {name}" for name in ("a.service", "static.service", "masked.service", "none.service")),
    "enable a.service",
    "is-enabled a.service",
    "enable b.service d.service",
    "is-enabled d.service",
    "is-enabled c.socket",
    "enable getty@tty7.service",
    "is-enabled getty@tty7.service",
    "is-enabled getty@.service",
    "enable getty@.service",
    "is-enabled getty@.service",
    "enable static.service",
    "enable masked.service",
    "enable none.service",
    "preset d.service",
    "preset a.service",
    "disable none.service",
    "disable a.service b.service",
    "is-enabled a.service",
    "disable getty@tty7.service",
    "disable getty@.service",
    "is-enabled b.service",
]


def _lay(root: Path) -> Path:
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / SYSTEM / "masked.service").symlink_to("/dev/null")
    return root


def _links(root: Path) -> dict[str, str]:
    found = {each.relative_to(root).as_posix(): os.readlink(each) for each in root.rglob("*") if each.is_symlink()}
    return dict(sorted(found.items()))


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="systemd is not here")
def test_links_states_and_codes_are_those_of_systemctl(tmp_path: Path) -> None:
    ours, theirs = _lay(tmp_path / "ours"), _lay(tmp_path / "theirs")
    host = LinuxHost(ours, SystemClock())
    for command in COMMANDS:
        verb, *names = command.split()
        want = subprocess.run(
            ["systemctl", f"--root={theirs}", verb, *names], capture_output=True, text=True, check=False
        )
        got = host.run(["systemctl", verb, *names])
        assert (bool(got.code), _links(ours)) == (bool(want.returncode), _links(theirs)), (command, got, want)
        if verb == "is-enabled" and want.stdout:
            assert got.output == want.stdout.strip(), command


def test_units_of_a_hostile_tree_change_nothing_outside(tmp_path: Path) -> None:
    """``systemctl --root`` itself would follow these links."""
    (tmp_path / "outside").mkdir()
    root = _lay(tmp_path / "root")
    (root / SYSTEM / "multi-user.target.wants").symlink_to("../../../../outside")
    (root / SYSTEM / "other.target.wants").symlink_to(tmp_path / "outside")
    (root / SYSTEM / "evil.service").write_text(
        f"{UNIT}[Install]\nWantedBy=../../../../../outside/x\nAlias=../../../e\n"
    )
    host = LinuxHost(root, SystemClock())
    host.run(["systemctl", "enable", "a.service"])
    host.run(["systemctl", "enable", "evil.service"])
    host.run(["systemctl", "enable", "../../../../outside/a.service"])
    assert list((tmp_path / "outside").iterdir()) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["outside", "root"]

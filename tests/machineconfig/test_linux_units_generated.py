"""Generated trees of units: what we do to their links is what ``systemctl --root`` does, whatever [Install] says."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import LinuxHost

SYSTEM, SHIPPED, PRESETS = "etc/systemd/system", "usr/lib/systemd/system", "usr/lib/systemd/system-preset"
NAMES = ("a.service", "b.service", "c.socket", "d.timer", "t@.service", "u@.service")
TARGETS = ("multi-user.target", "x.target", "a.service", "b.service")
WORLDS, COMMANDS = int(os.environ.get("SYNCLINE_UNIT_WORLDS", "12")), 8


def install_section(chance: random.Random, name: str) -> str:
    lines = []
    if chance.random() < 0.7:
        lines.append(f"WantedBy={' '.join(chance.sample(TARGETS, chance.randint(1, 2)))}")
    if chance.random() < 0.25:
        lines.append(f"RequiredBy={chance.choice(TARGETS)}")
    if chance.random() < 0.25:
        suffix = name.rpartition(".")[2]
        lines.append(f"Alias={'al-' + name if '@' not in name else 'al-t@' + chance.choice(['', 'i']) + '.' + suffix}")
    if chance.random() < 0.25:
        lines.append(f"Also={' '.join(chance.sample([n for n in NAMES if n != name], chance.randint(1, 2)))}")
    if "@" in name and chance.random() < 0.5:
        lines.append("DefaultInstance=one")
    if chance.random() < 0.1:
        lines.append("WantedBy=")
    chance.shuffle(lines)
    return "\n".join(["[Install]", *lines, ""]) if lines else ""


def world(seed: int) -> dict[str, str]:
    """Paths and contents; ``-> x`` is a link."""
    chance = random.Random(seed)
    tree = {f"{SHIPPED}/{name}": "[Unit]\n" for name in ("multi-user.target", "x.target")}
    for name in NAMES:
        body = "[Socket]\nListenStream=1\n" if name.endswith("socket") else "[Service]\nExecStart=/bin/true\n"
        for place in (SHIPPED, SYSTEM):
            if chance.random() < (0.7 if place == SHIPPED else 0.3):
                masked = place == SYSTEM and chance.random() < 0.3
                tree[f"{place}/{name}"] = "-> /dev/null" if masked else body + install_section(chance, name)
        if chance.random() < 0.2:
            tree[f"{chance.choice((SYSTEM, SHIPPED))}/{name}.d/5.conf"] = install_section(chance, name)
    rules = [f"{chance.choice(['enable', 'disable'])} {each}" for each in chance.sample((*NAMES, "*", "a*", "t@*"), 4)]
    tree[f"{PRESETS}/50.preset"] = "\n".join(rules) + "\n"
    return tree


def commands(seed: int) -> list[list[str]]:
    chance = random.Random(f"commands {seed}")
    asked = (*NAMES, "t@i.service", "u@j.service", "missing.service", "al-a.service")
    verbs = ["enable", "enable", "disable", "preset", "is-enabled", "is-enabled"]
    return [[chance.choice(verbs), chance.choice(asked)] for _ in range(COMMANDS)]


def lay(root: Path, tree: dict[str, str]) -> Path:
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            (root / path).symlink_to(text[3:])
        else:
            (root / path).write_text(text)
    return root


def links(root: Path) -> dict[str, str]:
    found = {each.relative_to(root).as_posix(): os.readlink(each) for each in root.rglob("*") if each.is_symlink()}
    return dict(sorted(found.items()))


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="systemd is not here")
@pytest.mark.parametrize("seed", range(WORLDS))
def test_generated_units_get_the_links_that_systemctl_makes(seed: int, tmp_path: Path) -> None:
    tree, done = world(seed), list[list[str]]()
    ours, theirs = lay(tmp_path / "ours", tree), lay(tmp_path / "theirs", tree)
    host = LinuxHost(ours, SystemClock())
    for verb, name in commands(seed):
        want = subprocess.run(
            ["systemctl", f"--root={theirs}", verb, name], capture_output=True, text=True, check=False
        )
        got = host.run(["systemctl", verb, name])
        done.append([verb, name])
        shown = (seed, done, got, want.stdout, want.stderr, tree)
        assert links(ours) == links(theirs), shown
        if verb == "is-enabled":
            assert got.output == (want.stdout.strip() or "not-found"), shown
        assert bool(got.code) == bool(want.returncode), shown

"""``python -m bench ignition [--quick]``: configurations of a node judged, merged and converted per second.

Beside each stands reading the same bytes as JSON, the least that any of it needs; beside the command stands
``ignition-validate``, where it is installed.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.started import OURS, PYTHON, Commands
from bench.table import Table
from syncline.ignition import rules, unitfile
from syncline.ignition.jsontext import dump
from syncline.ignition.merging import merge
from syncline.ignition.parsing import parse
from syncline.ignition.versions.converting import convert_to, parse_and_convert
from syncline.ignition.versions.upward import lift

__all__ = ["figures"]

FILES, UNITS = 60, 25
"""What a rendered worker of OpenShift has, about."""
UNIT = (
    "[Unit]\nDescription=part {number}\nAfter=network.target\n[Service]\n{lines}[Install]\nWantedBy=multi-user.target\n"
)


def node(version: str, *, seed: int = 1) -> dict[str, Any]:
    """Files of one to four kilobytes, half of them in base64; units with drop-ins; the user core."""
    chance = random.Random(seed)
    files, units = [], []
    for number in range(FILES):
        text = "".join(chance.choice("abcdefghijklmnopqrstuvwxyz =/.-\n") for _ in range(chance.randint(1000, 4000)))
        plain = "data:," + "".join(sign if sign.isalnum() else f"%{ord(sign):02X}" for sign in text)
        packed = "data:text/plain;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()
        source = {"source": plain if number % 2 else packed}
        files.append({"path": f"/etc/part{seed}/{number}.conf", "mode": 420, "contents": source})
    for number in range(UNITS):
        lines = "".join(f"Environment=KEY{line}=value\n" for line in range(chance.randint(5, 40)))
        dropins = [{"name": "10-more.conf", "contents": "[Service]\nEnvironment=A=B\n"}]
        contents = UNIT.format(number=number, lines=lines)
        units.append({"name": f"part-{number}.service", "enabled": True, "contents": contents, "dropins": dropins})
    if version.startswith("2"):
        for file in files:
            file["filesystem"] = "root"
    users = [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one", "ssh-ed25519 AAAA two"]}]
    sections = {"passwd": {"users": users}, "storage": {"files": files}, "systemd": {"units": units}}
    return {"ignition": {"version": version}, **sections}


def _per_s(work: Callable[[], object], seconds: float) -> float:
    """Calls per second of processor time."""
    work()
    begun, count = time.process_time(), 0
    while (took := time.process_time() - begun) < seconds:
        work()
        count += 1
    return count / took


def _first(raw: bytes) -> None:
    """As if its contents were never seen."""
    rules._known_data_problem.cache_clear()
    unitfile._known.cache_clear()
    parse(raw)


def _calls(raw: bytes, old: bytes) -> dict[str, Callable[[], object]]:
    small = b'{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,x"}}]}}'
    config, other = parse_and_convert(raw), parse_and_convert(dump(node("3.5.0", seed=2)).encode())
    early = parse(dump(node("3.1.0")).encode()).config
    assert early is not None
    wrong = raw.replace(b'"path":"/etc', b'"path":"etc')
    return {
        "read and judge one file": lambda: parse(small),
        "read and judge a node": lambda: _first(raw),
        "the same contents again": lambda: parse(raw),
        f"the same with {FILES} errors and their places": lambda: parse(wrong),
        "read a node of 2.2 as 3.5": lambda: parse_and_convert(old),
        "merge two nodes": lambda: merge(5, config, other),
        "lift a node from 3.1 to 3.5": lambda: lift(early, 1, 5),
        "serve a node as 3.1": lambda: convert_to(config, "3.1.0"),
        "serve a node as 2.2": lambda: convert_to(config, "2.2.0"),
        "write a node": lambda: dump(config),
    }


def figures(table: Table, *, quick: bool) -> None:
    """Rates are per second of processor time, so that others on the machine count less."""
    seconds, runs = (0.3, 3) if quick else (2.0, 15)
    raw, old = dump(node("3.5.0")).encode(), dump(node("2.2.0")).encode()
    limit = _per_s(lambda: json.loads(raw), seconds)
    table.title(f"Ignition of a node: {FILES} files, {UNITS} units, {len(raw):,} bytes; in one process")
    table.row("its JSON alone, by the standard library", f"{limit:,.0f}/s", f"{1000 / limit:.2f} ms")
    for name, call in _calls(raw, old).items():
        rate = _per_s(call, seconds)
        table.row(name, f"{rate:,.0f}/s", f"{1000 / rate:.2f} ms")
    table.title("One file judged by a command, start to end")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "node.ign"
        path.write_bytes(dump(node("3.3.0")).encode())  # the newest that Debian's knows
        commands = Commands(runs)
        ours = commands.took(OURS, "ignition", "validate", str(path))
        table.row("syncline ignition validate", f"{ours.cpu:.0f} ms CPU", str(ours))
        bare = commands.took(PYTHON, "import click")
        table.row("  of these Python with click, doing nothing", f"{bare.cpu:.0f} ms CPU", str(bare))
        found = shutil.which("ignition-validate")
        if found is None:
            table.row("ignition-validate", "-", "not there (Debian: package ignition)")
            return
        theirs = commands.took(found, str(path))
        table.row("ignition-validate", f"{theirs.cpu:.0f} ms CPU", str(theirs))
        inside = _per_s(lambda: _first(path.read_bytes()), seconds)
        each = f"{1000 / theirs.cpu:,.0f}/s by a process of ignition-validate for each"
        table.row("in process, for who judges many", f"{inside:,.0f}/s", each)

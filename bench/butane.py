"""``python -m bench butane [--quick]``: documents per second, contents compressed, a whole run of the command.

Beside the library stand Python's start and zlib: what no translator in Python can fall below.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from bench.started import OURS, PYTHON, Commands
from bench.table import Table
from syncline.ignition.butane.deflate import gzip
from syncline.ignition.butane.encoding import _gzip
from syncline.ignition.butane.transpile import transpile

__all__ = ["figures"]

HEAD = """\
variant: openshift
version: 4.16.0
metadata: {name: 99-worker, labels: {machineconfiguration.openshift.io/role: worker}}
"""
FILE = """\
    - path: /etc/conf.d/%d.conf
      mode: 0644
      contents:
        inline: |
          server = %d.example.com
          driftfile = /var/lib/drift
          retries = 3
"""
UNIT = """\
    - name: job-%d.service
      enabled: true
      contents: |
        [Service]
        ExecStart=/usr/bin/job %d
        [Install]
        WantedBy=multi-user.target
"""


def document(files: int, units: int) -> bytes:
    text = HEAD + "storage:\n  files:\n" + "".join(FILE % (number, number) for number in range(files))
    return (text + "systemd:\n  units:\n" + "".join(UNIT % (number, number) for number in range(units))).encode()


def _per_s(work: Callable[[], object], seconds: float) -> float:
    """Repetitions per second of processor time."""
    work()
    begun, count = time.process_time(), 0
    while (took := time.process_time() - begun) < seconds:
        work()
        count += 1
    return count / took


def _translated(source: bytes) -> None:
    _gzip.cache_clear()
    done = transpile(source)
    assert done.output is not None, done.report


def figures(table: Table, *, quick: bool) -> None:
    """Rates are per second of processor time, so that others on the machine count less."""
    seconds = 0.5 if quick else 3.0
    table.title("Butane to MachineConfig, in one process")
    for name, files, units in (("one file, one unit", 1, 1), ("20 files, 10 units", 20, 10)):
        source = document(files, units)
        rate = _per_s(lambda source=source: _translated(source), seconds)
        table.row(name, f"{rate:,.0f}/s", f"{1000 / rate:.2f} ms, {len(source):,} bytes")
    table.title("gzip as Go writes it")
    chance = random.Random(1)
    for name, data in (
        ("text, 64 KiB", b" ".join(b"word%d" % chance.randrange(2_000) for _ in range(7_500))[: 64 * 1024]),
        ("random, 64 KiB", chance.randbytes(64 * 1024)),
    ):
        ours = _per_s(lambda data=data: gzip(data), seconds) * len(data) / 1e6
        theirs = _per_s(lambda data=data: zlib.compress(data, 9), seconds) * len(data) / 1e6
        table.row(name, f"{ours:.2f} MB/s", f"zlib, in C: {theirs:.0f} MB/s")
    table.title("syncline butane FILE, start to finish, with bytecode on disk")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "a.bu"
        path.write_bytes(document(1, 1))
        commands = Commands(3 if quick else 15)
        rows = {
            "one file, one unit": (*OURS, "butane", str(path)),
            "--help": (*OURS, "butane", "--help"),
            "Python with click and PyYAML, doing nothing": (*PYTHON, "import click, yaml"),
        }
        upstream = shutil.which("butane")
        if upstream is not None:
            rows["butane, the same file"] = (upstream, "--pretty", str(path))
        for name, words in rows.items():
            took = commands.took(*words)
            table.row(name, f"{took.cpu:.0f} ms CPU", str(took))

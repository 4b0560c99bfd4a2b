"""Servers that can be killed at any step, started quickly: one process imports everything and makes a child of itself
for each life.

``python -m tests.cluster.killable`` reads a line of JSON per life from its input (:meth:`Nursery.start`) and answers
with the child's process id; a second line tells how the child ended. ``kill_at`` counts what the child writes, syncs
and truncates below SQLite, with ``kill_in`` only of the file of that name; 0 leaves it alone. ``busy`` makes it move
its log and give space back all the time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def main() -> None:
    import tests.cluster.faulty_files as faulty_files

    import syncline.cli.serving.apiserver
    import syncline.cluster.storage.disk as disk
    from syncline.cli.main import main as syncline

    for line in sys.stdin:
        life = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_live(life, syncline, disk, faulty_files))
        os.write(1, f"{pid}\n".encode())
        os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def _live(life: dict[str, Any], syncline: Any, disk: Any, faulty_files: Any) -> int:
    output = os.open(life["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if life["busy"]:
        disk.CHECKPOINT_AFTER_BYTES, disk.IDLE_S = 200_000, 0.02
        disk.GIVE_BACK_FROM_PAGES, disk.GIVE_BACK_STEP_PAGES = 4, 8
    try:
        if not life["kill_at"] and not life["sync_fails_at"]:
            return int(syncline(life["arguments"]))
        fails = {("sync", life["sync_fails_at"]): sqlite3.SQLITE_IOERR_FSYNC}
        faults = faulty_files.Faults(kill_at=life["kill_at"], kill_in=life["kill_in"], fails=fails)
        with faulty_files.installed(faults):
            return int(syncline(life["arguments"]))
    except BaseException:
        traceback.print_exc()
        return 99


@dataclass
class Nursery:
    """The test's side. One child lives at a time."""

    folder: Path
    process: subprocess.Popen[str]

    @classmethod
    def begun(cls, folder: Path) -> Nursery:
        command = [sys.executable, "-m", "tests.cluster.killable"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return cls(folder, process)

    def start(
        self, *arguments: str, kill_at: int = 0, kill_in: str = "", sync_fails_at: int = 0, busy: bool = True
    ) -> int:
        """Its process id. ``sync_fails_at`` is the number of the sync that fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        output = str(self.folder / "output")
        life = {
            "arguments": arguments,
            "kill_at": kill_at,
            "kill_in": kill_in,
            "sync_fails_at": sync_fails_at,
            "busy": busy,
            "output": output,
        }
        self.process.stdin.write(json.dumps(life) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self) -> int:
        """Waits; negative: the signal."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(300)
        self.process.stdout.close()


if __name__ == "__main__":
    main()

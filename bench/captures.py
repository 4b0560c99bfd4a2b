"""``python -m bench captures [--quick]``: capturing a playbook of 100 tasks beside ``ansible-playbook`` alone.

The playbook writes 100 files. Alone it writes them to a folder of this machine; captured it runs in a throwaway root,
where process 1 looks at the tree after each task.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.table import Table
from syncline.assembly.playbooks import PROGRAM
from syncline.sources.ansible.capturing import Wish, capture
from syncline.sources.ansible.launching import Play, packages_folder, run_play
from syncline.sources.ansible.rooting import RootRunner, Wanted

__all__ = ["figures"]

TASK = "    - copy: {dest: '{{ top }}/file-%d.conf', content: 'value = %d'}\n"


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of processor time of children."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures(table: Table, *, quick: bool) -> None:
    if packages_folder() is None:
        table.title("Playbooks: ansible-core is not installed")
        return
    tasks = 10 if quick else 100
    table.title(f"Playbooks: {tasks} tasks, seconds (and processor seconds)")
    with tempfile.TemporaryDirectory() as made:
        folder, top = Path(made) / "project", Path(made) / "top"
        folder.mkdir()
        top.mkdir()
        head = "- hosts: all\n  gather_facts: false\n  tasks:\n"
        (folder / "site.yml").write_text(head + "".join(TASK % (number, number) for number in range(tasks)))
        play = Play(str(folder / "site.yml"), variables={"top": str(top)})
        wanted = Wanted(folder, "site.yml", replace(play, variables={"top": "/etc"}))
        runner = RootRunner(Path(PROGRAM))
        for name, work in (
            ("ansible-playbook alone", lambda: run_play(play)),
            ("one run in a throwaway root", lambda: runner.run(wanted)),
            ("a capture: two runs, compared", lambda: capture(runner, wanted, Wish("worker"))),
        ):
            wall, cpu = _timed(work)
            table.row(name, f"{wall:.1f} s", f"{cpu:.1f} s of processor time, {1000 * wall / tasks:.0f} ms a task")

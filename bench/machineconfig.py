"""``python -m bench machineconfig [--quick]``: a pool made of five hundred MachineConfigs, and what one change costs.

Each has four files of its own, a file and a unit that all of them share, a unit and a kernel argument. Beside the
render stands writing its result as JSON: what no renderer can fall below.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.table import Table
from syncline.ignition import jsontext
from syncline.machineconfig.configs import parsing as reading
from syncline.machineconfig.configs.compare import changes
from syncline.machineconfig.names import GENERATED_VERSION
from syncline.machineconfig.render.naming import rendered_name
from syncline.machineconfig.render.rendering import Release, render

__all__ = ["figures"]

RELEASE = Release("bench/1", "1")
CONTROLLER: dict[str, Any] = {"metadata": {"annotations": {GENERATED_VERSION: RELEASE.raw}}, "spec": {}}
POOL: dict[str, Any] = {"metadata": {"name": "worker", "uid": "1"}}
ROLE = "machineconfiguration.openshift.io/role"


def machine_config(number: int, text: str = "x" * 200) -> dict[str, Any]:
    files = [
        {"path": f"/etc/conf.d/{number}-{one}", "mode": 0o644, "contents": {"source": f"data:,{text}"}}
        for one in range(4)
    ]
    shared = {"path": "/etc/shared", "contents": {"source": f"data:,{number}"}}
    dropin = {"name": f"{number}.conf", "contents": "[Service]\nNice=1\n"}
    units = [
        {"name": f"job-{number}.service", "enabled": True, "contents": "[Install]\nWantedBy=multi-user.target\n"},
        {"name": "shared.service", "dropins": [dropin]},
    ]
    config = {"ignition": {"version": "3.2.0"}, "storage": {"files": [*files, shared]}, "systemd": {"units": units}}
    spec = {"config": config, "kernelArguments": [f"a{number}=1"]}
    return {"metadata": {"name": f"{number:04}-worker", "labels": {ROLE: "worker"}}, "spec": spec}


def _best_ms(work: Callable[[], object], runs: int) -> float:
    """The least processor time."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best * 1000


def figures(table: Table, *, quick: bool) -> None:
    """Processor time, so that others on the machine count less."""
    runs = 2 if quick else 5
    for count in (50, 100) if quick else (50, 500):
        many = [machine_config(number) for number in range(count)]
        done = render(POOL, many, CONTROLLER, RELEASE).config
        size = len(jsontext.dump(done))
        table.title(f"{count} MachineConfigs, rendered to {size / 1024:,.0f} KiB")

        def afresh(many: list[dict[str, Any]] = many) -> None:
            reading.forget()
            render(POOL, many, CONTROLLER, RELEASE)

        cold = _best_ms(afresh, runs)
        warm = _best_ms(lambda many=many: render(POOL, many, CONTROLLER, RELEASE), runs)
        floor = _best_ms(lambda done=done: jsontext.dump(done), runs)
        table.row("read, judge, merge and name all", f"{cold:,.0f} ms", f"{cold / count:.2f} ms each")
        changed = [*many[:-1], machine_config(count - 1, "y" * 200)]
        table.row("again, when one has changed", f"{warm:,.0f} ms", f"writing the result as JSON: {floor:.0f} ms")
        table.row(
            "of that the name", f"{_best_ms(lambda done=done: rendered_name('worker', done['spec']), runs):,.0f} ms"
        )
        after = render(POOL, changed, CONTROLLER, RELEASE).config
        told = _best_ms(lambda done=done, after=after: changes(done["spec"], after["spec"]), runs)
        table.row("say what the change changes", f"{told:,.0f} ms")

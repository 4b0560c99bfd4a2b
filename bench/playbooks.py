"""What a periodic check for drift costs on simulated nodes: ``python -m bench.playbooks [NODES]``.

A playbook of a hundred tasks is run on each machine once, then checked; without the API, which a check that finds
nothing does not write to.
"""

from __future__ import annotations

import hashlib
import sys
import time
from datetime import timedelta

from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.base.clock import VirtualClock
from syncline.cluster.machines.machine import MachineSpec
from syncline.cluster.machines.simulated import Machines
from syncline.machineconfig.ansible.content import File, pack
from syncline.machineconfig.ansible.play import CONTENT, PLAY, ROOT, Play
from syncline.machineconfig.ansible.running import Running
from syncline.machineconfig.generating.making import data_file, file_of, made_config
from syncline.machineconfig.render.rendering import Release

TASKS = 100


def main(count: int) -> None:
    """Print seconds of processor time for each phase."""
    clock, machines = VirtualClock(), Machines()
    hosts = SimulatedHosts(machines, clock)
    lines = "".join(f"    - name: task {n}\n      copy: {{content: x, dest: /etc/x{n}}}\n" for n in range(TASKS))
    packed = pack({"site.yml": File(f"- hosts: all\n  tasks:\n{lines}".encode())})
    play = Play("bench", hashlib.sha256(packed).hexdigest(), "site.yml", check_s=1800.0)
    files = [file_of(f"{ROOT}/bench/{PLAY}", play.text), data_file(f"{ROOT}/bench/{CONTENT}", packed)]
    config = made_config("rendered-worker-bench", "worker", Release("1", "1"), files=files)
    names = [f"worker-{n}" for n in range(count)]
    for name in names:
        machines.add(MachineSpec(name))
    for phase in ("plan", "run", "check"):
        began = time.process_time()
        for name in names:
            facts = hosts.facts(name)
            assert facts is not None, "it was added"
            getattr(Running(name, hosts.host(name), hosts.player, config, facts.boot_id), phase)(["bench"])
        spent = time.process_time() - began
        print(f"{phase}: {count} nodes, {TASKS} tasks: {spent:.2f} s of CPU, {1000 * spent / count:.2f} ms each")
        clock.set(clock.now() + timedelta(seconds=play.check_s))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)

"""``python3 -m bench.machines [tree|run] [--keep DIR]``: the node agent on a Debian in QEMU, from birth to power cuts.

``tree`` makes the small Debian tree that tests compare with. ``run`` makes a disk with systemd and the agent as a
service, serves a cluster here, boots the machine, and tells of each step what was seen after how long. As root; needs
debootstrap, mke2fs, ssh and qemu-system-x86 (``apt-get install debootstrap e2fsprogs openssh-client qemu-system-x86``).
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.machines.image import made_image
from bench.machines.qemu import Machine
from bench.machines.story import Story
from bench.machines.tree import MINIMAL, NoTree, made
from bench.processes import free_port, running, syncline

NODE = "edge"
PROGRAMS = ("qemu-system-x86_64", "ssh", "ssh-keygen", "mke2fs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("tree", "run"), default="run")
    parser.add_argument("--keep", type=Path, help="folder for disk, logs and keys, kept afterwards")
    parser.add_argument("--only", default="", help="names of steps, by comma")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the machine and the cluster end with us
    try:
        if given.what == "tree":
            print(made("minimal", MINIMAL))
            return 0
        missing = [name for name in PROGRAMS if shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin") is None]
        if missing:
            raise NoTree(f"{', '.join(missing)}: not here; see --help for what to install")
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
            return run(given.keep, given.only)
        with tempfile.TemporaryDirectory(prefix="syncline-machine-") as folder:
            return run(Path(folder), given.only)
    except NoTree as error:
        print(error, file=sys.stderr)
        return 2


def run(folder: Path, only: str) -> int:
    key = folder / "key"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    port = free_port()
    served = folder / "cluster"
    served.mkdir(exist_ok=True)
    up = ["up", "--memory", "--machine-config", "--nodes", "1", "--label", "node-role.kubernetes.io/master="]
    up += ["--listen", f"127.0.0.1:{port}", "--kubeconfig-out", str(served / "kubeconfig")]
    with running(syncline(*up), served, port) as cluster:
        own = folder / "node.kubeconfig"
        told = ["--server", f"https://10.0.2.2:{port}", "--tls-server-name", "127.0.0.1", "-o", str(own)]
        made_it = syncline("node", "kubeconfig", NODE, *told, "--kubeconfig", str(cluster.kubeconfig))
        subprocess.run(made_it, check=True)
        image = made_image(folder, host_name=NODE, public_key=key.with_suffix(".pub").read_text(), kubeconfig=own)
        machine = Machine(image, folder, free_port(), key)
        try:
            return Story(machine, cluster, NODE, folder).told(only)
        finally:
            machine.cut_power()


if __name__ == "__main__":
    sys.exit(main())

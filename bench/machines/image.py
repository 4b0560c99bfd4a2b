"""A disk with a Debian of systemd and the node agent in it, from a cached tree; and its kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.machines.tree import MACHINE, made

ROOT = Path(__file__).resolve().parents[2]
SIZE = "2G"
LIBRARY = "/opt/syncline/lib"
PROGRAM = "/opt/syncline/bin/syncline"
LAUNCHER = f"""#!/usr/bin/python3 -I
import sys
sys.path.insert(0, {LIBRARY!r})
from syncline.cli.main import main
sys.exit(main())
"""
NETWORK = "[Match]\nName=e*\n[Network]\nDHCP=ipv4\n"
SYNCLINE = (sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())")
PYTHON = "3.11"
"""Of the Debian in the image."""


@dataclass(frozen=True, slots=True)
class Image:
    disk: Path
    kernel: Path
    ramdisk: Path


def made_image(folder: Path, *, host_name: str, public_key: str, kubeconfig: Path) -> Image:
    """Whoever holds the key enters as root; the agent is a service that registers the node ``host_name`` as a worker.
    Needs root rights and, the first time, the network."""
    tree = made("machine", MACHINE)
    _python(tree)
    files = {
        "etc/hostname": f"{host_name}\n",
        "etc/fstab": "/dev/vda / ext4 rw,errors=remount-ro 0 1\n",
        "etc/systemd/network/80-dhcp.network": NETWORK,
        "root/.ssh/authorized_keys": public_key,
    }
    for path, text in files.items():
        (tree / path).parent.mkdir(mode=0o700 if "ssh" in path else 0o755, parents=True, exist_ok=True)
        (tree / path).write_text(text)
    (tree / "etc/machine-id").write_text("")
    if "\ncore:" not in (tree / "etc/passwd").read_text():
        _run("chroot", str(tree), "useradd", "--create-home", "--shell", "/bin/bash", "--user-group", "core")
    _run("systemctl", f"--root={tree}", "enable", "systemd-networkd.service", "ssh.service")
    label = ["--register", "--label", "node-role.kubernetes.io/worker="]
    options = ["--kubeconfig", str(kubeconfig), "--node", host_name, "--program", PROGRAM, "--root", str(tree)]
    _run(*SYNCLINE, "node-agent", "install", *options, *label)
    disk = folder / "disk.raw"
    disk.unlink(missing_ok=True)
    _run("mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(disk), SIZE)
    return Image(disk, _newest(tree, "vmlinuz-*"), _newest(tree, "initrd.img-*"))


def _python(tree: Path) -> None:
    """The wheel of this repository and its locked dependencies."""
    library = tree / LIBRARY[1:]
    shutil.rmtree(library, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(library)]
    wheels = ["--only-binary", ":all:", "--python-version", PYTHON]
    _run(*pip, *wheels, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
    source = tree / "opt/syncline/source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    _run(*pip, "--no-deps", str(source))
    shutil.rmtree(source)
    # Compiled here: an emulated machine takes minutes for it.
    _run(
        sys.executable, "-m", "compileall", "-q", "-x", "lib2to3", "--invalidation-mode", "unchecked-hash", str(library)
    )
    launcher = tree / PROGRAM[1:]
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


def _newest(tree: Path, pattern: str) -> Path:
    return max((tree / "boot").glob(pattern))


def _run(*command: str) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
    }
    done = subprocess.run(["nice", "-n", "15", *command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:6])}: exit status {done.returncode}: {done.stderr or done.stdout}")

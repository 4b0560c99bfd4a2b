"""One machine in QEMU: powered on, entered by ssh, and deprived of its power. Emulated unless told otherwise."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from bench.machines.image import Image

ACCELERATOR = os.environ.get("SYNCLINE_QEMU_ACCEL", "tcg")
"""``kvm`` where the machine has it and it is yours to use."""
MEMORY_MIB = 768
LOOK_S = 1.0
CONSOLE = "root=/dev/vda rw console=ttyS0 net.ifnames=0 systemd.show_status=0 loglevel=4"


class Machine:
    """Its disk outlives its power; ``port``: of ssh on this host; ``key``: a private key that root takes."""

    def __init__(self, image: Image, folder: Path, port: int, key: Path) -> None:
        self._image, self._folder, self._port, self._key = image, folder, port, key
        self._process: subprocess.Popen[bytes] | None = None

    def power_on(self) -> None:
        """The host's loopback is 10.0.2.2 there."""
        image = self._image
        words = ["qemu-system-x86_64", "-machine", "pc", "-accel", ACCELERATOR, "-smp", "1", "-m", str(MEMORY_MIB)]
        words += ["-cpu", "host" if ACCELERATOR == "kvm" else "max", "-nodefaults", "-display", "none"]
        words += ["-serial", f"file:{self._folder / 'console.log'}"]
        words += ["-kernel", str(image.kernel), "-initrd", str(image.ramdisk), "-append", CONSOLE]
        words += ["-drive", f"file={image.disk},if=virtio,format=raw"]
        words += ["-netdev", f"user,id=n,hostfwd=tcp:127.0.0.1:{self._port}-:22", "-device", "virtio-net-pci,netdev=n"]
        words += ["-device", "virtio-rng-pci"]
        with (self._folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["nice", "-n", "15", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def cut_power(self) -> None:
        """Without a word: what the machine had not written is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ssh(self, command: str, *, user: str = "root", key: Path | None = None) -> subprocess.CompletedProcess[str]:
        options = ["-i", str(key or self._key), "-p", str(self._port), "-o", "StrictHostKeyChecking=no"]
        options += ["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes"]
        options += ["-o", "ConnectTimeout=20", "-o", "IdentitiesOnly=yes"]
        words = ["ssh", *options, f"{user}@127.0.0.1", command]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)

    def says(self, command: str) -> str:
        """What a command prints there, tried until the machine answers; its failure is ours."""
        for _ in range(120):
            done = self.ssh(command)
            if done.returncode != 255:
                break
            time.sleep(LOOK_S)
        if done.returncode != 0:
            raise SystemExit(f"{command}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

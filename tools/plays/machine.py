"""A machine made of a folder: its own processes, mounts, ``/run`` and boot id, this machine's ``/usr`` and kernel.

Process 1 is a shell that stands in for systemd: it starts the node agent, starts it again when it ends, and waits for
the power to be switched. Whoever writes to ``/run/power`` switches it; the kernel then kills all processes of the
machine at once. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from bench.processes import cpu_s_with_ended

import syncline

SOURCE = str(Path(syncline.__file__).resolve().parents[1])
FOLDERS = "dev etc home proc root run sys tmp usr var/lib"
LINKS = ("bin", "lib", "lib64", "sbin")
SYSTEM = {
    "etc/os-release": 'ID=debian\nPRETTY_NAME="a tree"\n',
    "etc/passwd": "root:x:0:0::/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:*:1::::::\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}
SYSTEMCTL = """\
#!/bin/sh
case "$1" in
  reboot) echo reboot > /run/power ;;
  is-system-running) echo running ;;
esac
"""
RUN = "import sys; from syncline.cli.main import main; sys.exit(main())"
REBOOTED = 64


class Machine:
    """``root``: its files, from outside. ``boots``: how often it was switched on."""

    def __init__(self, name: str, place: Path, programs: dict[str, str]) -> None:
        """``programs``: shell scripts in its ``/usr/local/sbin``, beside systemctl."""
        self.name, self.root, self.boots = name, place / name, 0
        self._place, self.used_s = place, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        for folder in FOLDERS.split():
            (self.root / folder).mkdir(parents=True)
        for link in LINKS:
            (self.root / link).symlink_to(f"usr/{link}")
        for path, text in SYSTEM.items():
            (self.root / path).write_text(text)
        self._own = place / f"{name}-programs"
        self._own.mkdir()
        for program, text in {"systemctl": SYSTEMCTL, **programs}.items():
            (self._own / program).write_text(text)
            (self._own / program).chmod(0o755)

    @property
    def log(self) -> Path:
        return self._place / f"{self.name}.log"

    @property
    def kubeconfig(self) -> Path:
        """Where its agent finds the cluster."""
        return self.root / "etc/agent.kubeconfig"

    def power_on(self) -> None:
        self.boots += 1
        boot = self._place / f"{self.name}-boot"
        boot.write_text(f"{UUID(int=os.getpid() << 64 | hash(self.name) % 2**32 << 16 | self.boots)}\n")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "-mpf", "--kill-child", "sh", "-c", "\n".join(self._init(boot))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def cut_power(self) -> None:
        """End it without a word to anyone on it; ``used_s`` is then the processor time of its agents so far, without
        what went before a reboot of its own."""
        if self._process is not None:
            self.used_s += sum(map(cpu_s_with_ended, self._processes()))
            self._process.kill()
            self._process.wait()
            self._process = None

    def look(self) -> None:
        """Switch it on again if it has rebooted."""
        if self._process is not None and self._process.poll() is not None:
            if self._process.returncode != REBOOTED:
                raise SystemExit(f"{self.name} has ended with {self._process.returncode}:\n{self.tail()}")
            self.power_on()

    def tail(self) -> str:
        return self.log.read_text()[-3000:]

    def _processes(self) -> Iterator[int]:
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(place / "root") == str(self.root):
                    yield int(place.name)

    def _init(self, boot: Path) -> Iterator[str]:
        root = self.root
        yield "set -e; mount --make-rprivate /"
        for folder in dict.fromkeys(("/usr", sys.prefix, sys.base_prefix, SOURCE)):
            inside = root / folder.lstrip("/")
            yield f"mkdir -p '{inside}'; mount --rbind '{folder}' '{inside}'; mount -o remount,bind,ro '{inside}'"
        yield f"mount --bind '{self._own}' '{root}/usr/local/sbin'"
        yield f"mount --rbind /dev '{root}/dev'; mount -t tmpfs tmpfs '{root}/run'; mount -t proc proc '{root}/proc'"
        yield f"mount --bind '{boot}' '{root}/proc/sys/kernel/random/boot_id'; mkfifo '{root}/run/power'"
        environment = f"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PYTHONPATH={SOURCE}"
        agent = f"node-agent --kubeconfig /etc/agent.kubeconfig --node {self.name} --register"
        label = "--label node-role.kubernetes.io/worker="
        start = f"chroot '{root}' env -i {environment} {sys.executable} -c '{RUN}' {agent} {label}"
        yield f"(set +e; while :; do {start}; sleep 1; done) &"
        yield f"read -r how < '{root}/run/power'; exit {REBOOTED}"

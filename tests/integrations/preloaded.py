"""The program ``syncline`` as a process for each call: forks of one that has imported it.

A play calls the program dozens of times, and two thirds of a call are imports. ``preloaded`` yields the path of a
script that behaves as the program: arguments, environment, folder, standard streams and exit code are the caller's.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
COMMANDS = (
    "syncline.cli.ansible.capture",
    "syncline.cli.app.group",
    "syncline.cli.app.show",
    "syncline.cli.app.sync",
    "syncline.cli.app.wait",
    "syncline.cli.fleet.join",
    "syncline.cli.inventory",
    "syncline.cli.machines.node",
    "syncline.cli.machines.nodeinstall",
    "syncline.cli.machines.pool",
    "syncline.cli.plan",
    "syncline.hosts.noderights",
)
"""Imported once; what they import when called is imported by each call."""
CLIENT = """#!{python} -IS
import json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({path!r})
said = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(link, [len(said).to_bytes(4, "big")], [0, 1, 2])
link.sendall(said)
os._exit(int(link.recv(8) or b"255"))
"""


@contextlib.contextmanager
def preloaded(folder: Path, modules: Sequence[str] = COMMANDS) -> Iterator[Path]:
    """Start the process, yield the program's path in ``folder``, end the process. ``modules``: imported once."""
    path, program = folder / "program.socket", folder / "syncline"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        program.write_text(CLIENT.format(python=sys.executable, path=str(path)))
        program.chmod(0o755)
        words = [sys.executable, str(Path(__file__).resolve()), str(listener.fileno()), *modules]
        server = subprocess.Popen(words, pass_fds=[listener.fileno()], env=os.environ | {"PYTHONPATH": str(SOURCES)})
        try:
            yield program
        finally:
            server.terminate()
            server.wait()


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
    """Answer each call by a fork."""
    import importlib

    for name in modules:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        link, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            run(link)
        link.close()


def run(link: socket.socket) -> None:
    """Run one call and end the process."""
    from syncline.cli.main import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(link, 4, 3)
    left, said = int.from_bytes(size, "big"), b""
    while len(said) < left:
        said += link.recv(left - len(said))
    words, environment, folder = json.loads(said)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    code = 255
    try:
        sys.argv = ["syncline", *words]
        code = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        link.sendall(str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])

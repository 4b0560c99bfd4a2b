"""``oc`` and ``kubectl`` in a hook: run the tool over HTTPS with the pod's service account."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from syncline.cluster.machines.tools.arguments import parse
from syncline.cluster.machines.tools.oc import run
from syncline.cluster.machines.tools.steps import CommandError, Output, Session, Sleep
from syncline.kube.client import Request
from syncline.kube.transport.http import HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig


def _read(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


async def _drive(argv: list[str], access: ClusterAccess, program: str) -> int:
    """Send requests, print output, sleep."""
    http = HttpClient(access)
    steps = run(argv, Session(program, access.namespace, _read, os.environ))
    answer = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Request):
                answer = await http.send(step)
            elif isinstance(step, Sleep):
                await asyncio.sleep(step.seconds)
            else:
                _print(step)
    except StopIteration as stop:
        code: int = stop.value
        return code
    finally:
        await http.close()


def _print(output: Output) -> None:
    stream = sys.stderr if output.error else sys.stdout
    stream.write(output.text)
    stream.flush()


def main(argv: list[str]) -> int:
    program = os.environ.get("SYNCLINE_PROGRAM", "oc")
    try:
        arguments = parse(argv)
        access = load_kubeconfig(arguments.get("kubeconfig") or None, arguments.get("context") or None)
    except (CommandError, KubeconfigError) as error:
        _print(Output(f"{error}\n", error=True))
        return 1
    return asyncio.run(_drive(argv, access, program))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

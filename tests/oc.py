"""Our own ``oc`` against a served cluster, in the process of the test: starting a program for each question costs more
than the question. Tests of pods that run ``oc`` inside start the program."""

from __future__ import annotations

import asyncio
from pathlib import Path

from syncline.cluster.machines.tools.oc import run
from syncline.cluster.machines.tools.steps import Output, Session, Sleep
from syncline.kube.client import Request
from syncline.kube.transport.http import HttpClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

LONGEST_S = 600
"""A bound for what hangs."""


class Oc:
    """``oc("get", "pods")`` is what it prints; raises AssertionError with what it says to stderr where it fails."""

    def __init__(self, kubeconfig: Path) -> None:
        self._access = load_kubeconfig(str(kubeconfig), None)

    def __call__(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """Without ``check`` a failure is an answer, and what it says to stderr follows."""
        code, out, err = asyncio.run(asyncio.wait_for(self._drive(list(argv), stdin), LONGEST_S))
        assert not check or code == 0, err
        return out + ("" if check else err)

    async def _drive(self, argv: list[str], stdin: str) -> tuple[int, str, str]:
        def read(name: str) -> bytes:
            return stdin.encode() if name == "-" else Path(name).read_bytes()

        http, answer, said = HttpClient(self._access), None, {False: "", True: ""}
        steps = run(argv, Session("oc", self._access.namespace, read, {}))
        try:
            while True:
                step, answer = steps.send(answer), None
                if isinstance(step, Request):
                    answer = await http.send(step)
                elif isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                elif isinstance(step, Output):
                    said[step.error] += step.text
        except StopIteration as stop:
            return stop.value, said[False], said[True]
        finally:
            await http.close()

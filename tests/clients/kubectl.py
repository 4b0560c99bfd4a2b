"""The machine's own kubectl, unmodified, as tests use it: one namespace, one set of words, what it said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import IO, Any

import pytest

from syncline.kube.objects import Obj

LIMIT_S = 300
"""A command that takes longer on a busy machine hangs."""
WAIT = f"--timeout={LIMIT_S}s"
"""An upper bound on a busy machine; each wait ends with what it waits for."""

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl in one namespace. ``home`` takes its caches and files."""

    kubeconfig: Path
    home: Path
    namespace: str = "default"
    url: str = ""

    def __call__(self, command: str, *rest: str, stdin: Any = "", **environment: str) -> str:
        """Run; the command must succeed. ``command`` is split at spaces, ``rest`` is taken as it is."""
        said = self.tried(command, *rest, stdin=stdin, **environment)
        assert said.code == 0, f"kubectl {command} {rest}: exit {said.code}\n{said.out}\n{said.err}"
        return said.out

    def refused(self, command: str, *rest: str, stdin: Any = "", **environment: str) -> str:
        """Run; the command must fail. What it says about it."""
        said = self.tried(command, *rest, stdin=stdin, **environment)
        assert said.code != 0, f"kubectl {command} {rest} was expected to fail\n{said.out}\n{said.err}"
        return said.err + said.out

    def tried(self, command: str, *rest: str, stdin: Any = "", **environment: str) -> Said:
        """Run; whatever comes. ``stdin`` is text, or objects to send as JSON."""
        done = subprocess.run(
            self._words(command, rest),
            input=stdin if isinstance(stdin, str) else documents(stdin),
            capture_output=True,
            text=True,
            timeout=2 * LIMIT_S,
            env=self._environment(environment),
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, command: str, *rest: str) -> Obj:
        found: Obj = json.loads(self(command, *rest, "-o", "json"))
        return found

    def eventually(self, command: str, wanted: Callable[[str], Any]) -> str:
        """What the command says once it says what is ``wanted``: for what no ``kubectl wait`` can wait for."""
        until = time.monotonic() + LIMIT_S
        while not wanted(said := self(command)):
            assert time.monotonic() < until, f"kubectl {command} does not say what is wanted in {LIMIT_S} s:\n{said}"
        return said

    @contextmanager
    def running(self, command: str, *, complaints: bool = False) -> Iterator[IO[str]]:
        """What a command says (with ``complaints`` also what it says beside) that goes on until the test has read
        enough of it; ended at the latest after LIMIT_S."""
        process = subprocess.Popen(
            self._words(command, ()),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if complaints else subprocess.DEVNULL,
            text=True,
            env=self._environment({}),
        )
        limit = Timer(LIMIT_S, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            yield process.stdout
        finally:
            limit.cancel()
            process.kill()
            process.communicate()

    def within(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def _words(self, command: str, rest: tuple[str, ...]) -> list[str]:
        return ["kubectl", "-n", self.namespace, *command.split(), *rest]

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.home / "cache"),
            **more,
        }


def documents(objects: Any) -> str:
    """One object or several, as kubectl reads them from ``-f -``."""
    several = objects if isinstance(objects, list | tuple) else [objects]
    return "\n".join(json.dumps(each) for each in several)


def until(lines: IO[str], *parts: str) -> list[str]:
    """Read lines until one holds all of ``parts``; fails where the output ends before."""
    seen: list[str] = []
    for line in lines:
        seen.append(line.rstrip("\n"))
        if all(part in line for part in parts):
            return seen
    raise AssertionError(f"no line with {parts} in:\n" + "\n".join(seen))

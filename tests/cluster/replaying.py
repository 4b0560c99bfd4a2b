"""Replays recorded conversations against a :class:`World`: no socket, and waiting is virtual.

The comparing is that of ``kubecheck`` itself, which stands with the recordings; here only its server and its clock are
exchanged.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import urllib.parse
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.kube.client import Request

from .world import World  # type: ignore[import-untyped]

__all__ = ["differing_steps", "recordings"]


def recordings() -> Path:
    """The folder of recordings; a test that asks is skipped with a word where it is missing."""
    if not (CONFORMANCE / "kubecheck").exists():
        pytest.skip(absent(CONFORMANCE))
    return CONFORMANCE


class _VirtualTime:
    """The part of the ``time`` module that kubecheck uses."""

    def __init__(self, world: World) -> None:
        self._world = world

    def sleep(self, seconds: float) -> None:
        self._world.advance(seconds)

    def monotonic(self) -> float:
        return float(self._world.clock.now().timestamp())

    def gmtime(self) -> Any:
        return self._world.clock.now().timetuple()

    @staticmethod
    def strftime(form: str, when: Any) -> str:
        import time

        return time.strftime(form, when)


class _Server:
    """``kubecheck``'s server: the world settles before each request."""

    def __init__(self, world: World) -> None:
        self._world = world

    def call(self, method: str, path: str, body: Any = None, headers: Any = None, timeout: float = 30) -> Any:
        self._world.settle()
        path, _, text = path.partition("?")
        given = {name.lower(): value for name, value in headers or []}
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        raw = body.encode() if isinstance(body, str) else json.loads(json.dumps(body))
        answer = self._world.transport.send(Request(method, urllib.parse.unquote(path), query, given, raw))
        listed = {name.lower(): [value] for name, value in (answer.headers or {}).items()}
        return answer.status, json.loads(answer.raw) if answer.raw else "", listed


def _kubecheck(folder: Path, world: World) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("kubecheck", str(CONFORMANCE / "kubecheck"))
    spec = importlib.util.spec_from_loader("kubecheck", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.time = _VirtualTime(world)  # type: ignore[attr-defined]
    return module


def differing_steps(name: str) -> tuple[list[str], int]:
    """Steps of one recording that answer otherwise, with the differences, and the number of steps compared."""
    folder = recordings()
    world = World()
    module = _kubecheck(folder, world)
    scenario = json.loads((folder / "recorded" / f"{name}.json").read_text())
    run = module.Run(_Server(world), scenario)
    run.prepare()
    wrong: list[str] = []
    compared = 0
    for step in scenario["steps"]:
        outcome = run.run(step)
        if outcome is None:
            continue
        compared += 1
        found = module.differences(step["expect"], outcome)
        if found:
            wrong.append(f"{name}/{step['id']}: " + "; ".join(found[:6]))
    return [*wrong, *run.notes], compared

"""Render workers: bounded, without credentials, and replaced when they die."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from syncline.base.seccomp import ARCHITECTURES
from syncline.sources.errors import Problem, SourceError
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits, _environment

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rjsonnet") is None, reason="rjsonnet is not installed: pip install 'syncline[jsonnet]'"
)


def program(text: str) -> dict[str, Any]:
    names = ("ext_vars", "ext_codes", "tla_vars", "tla_codes")
    return {"files": {"a": text.encode()}, "mains": ["a"], "search": []} | {name: {} for name in names}


@contextmanager
def workers(**limits: Any) -> Iterator[RenderWorkers]:
    made = RenderWorkers(WorkerLimits(workers=1, **limits))
    try:
        yield made
    finally:
        made.close()


ENDLESS = "std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0)"
GREEDY = "std.length(std.repeat('x', 4000000000))"


def test_a_worker_stays_warm_and_an_error_of_a_program_does_not_end_it() -> None:
    with workers() as pool:
        assert pool.run("jsonnet", program("1"), label="x") == ["1"]
        with pytest.raises(SourceError, match=r"^x: a: runtime error: no"):
            pool.run("jsonnet", program("error 'no'"), label="x")
        assert pool.run("jsonnet", program("2"), label="x") == ["2"]
        assert pool.started == 1


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        (ENDLESS, {"wall_s": 1.0}, "longer than 1 seconds|died"),
        (ENDLESS, {"cpu_s": 0}, "processor time|died"),
        (GREEDY, {"memory_bytes": 400_000_000}, "died|memory"),
        ("std.repeat('x', 100000)", {"output_bytes": 1000}, "gave more than 1000 bytes"),
    ],
)
def test_a_limit_is_one_clear_error_and_the_next_task_gets_a_new_worker(
    text: str, limits: dict[str, Any], message: str
) -> None:
    with workers(**limits) as pool:
        with pytest.raises(SourceError, match=message) as caught:
            pool.run("jsonnet", program(text), label="x")
        assert caught.value.problem in (Problem.EXHAUSTED, Problem.INVALID)
        assert "\n" not in str(caught.value)
        pool._limits = replace(pool._limits, wall_s=300.0, cpu_s=60)  # a new worker may take its time to start
        assert pool.run("jsonnet", program("1"), label="x") == ["1"]


def test_a_worker_gets_no_home_and_no_settings_of_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "AWS_SECRET_ACCESS_KEY", "KUBECONFIG", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "canary")
    assert "canary" not in _environment().values()


def test_a_worker_has_no_sockets_and_gains_no_rights() -> None:
    with workers() as pool:
        pool.run("jsonnet", program("1"), label="x")
        status = Path(f"/proc/{pool._idle[0].pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert os.uname().machine not in ARCHITECTURES or "Seccomp:\t2" in status

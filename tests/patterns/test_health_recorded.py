"""Recorded health of OLM's and policies' objects: of Argo CD's scripts, and of the copies that the patterns operator
gives its Argo CD."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from tests.recorded import Case, cases_of

from syncline.apply.health.check import health_of
from syncline.apply.health.overrides import meaning
from syncline.apply.health.verdict import Health
from syncline.assembly.scripts.lua import LuaWorker
from syncline.patterns.installing.argocd import UNBOUND_CLAIMS


def script(name: str) -> str:
    return files("syncline.patterns.installing").joinpath(f"{name}_health.lua").read_text(encoding="utf-8")


SCRIPTS = {
    "health-subscription-operator": script("subscription"),
    "health-application-operator": script("application"),
    "health-pvc": UNBOUND_CLAIMS,
}
OWN = [one for one in cases_of("patterns", "operators") if one["kind"] == "health"]
OF_OPERATOR = [one for one in OWN if one["family"] in SCRIPTS]
OF_ARGO = [one for one in OWN if one["family"] not in SCRIPTS]


def said(health: Health | None) -> Any:
    """The answer as recorded: null without a check, else status and message."""
    return None if health is None else {"status": str(health.status), "message": health.message}


def expected(case: Case) -> Any:
    return None if case["expect"] is None else {"message": "", **case["expect"]}


@pytest.mark.parametrize("case", OF_ARGO, ids=lambda case: case["id"])
def test_health_is_that_of_argo_cd(case: Case) -> None:
    assert said(health_of(case["input"])) == expected(case)


@pytest.fixture(scope="module")
def worker() -> Iterator[LuaWorker]:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    with LuaWorker() as started:
        yield started


@pytest.mark.parametrize("case", OF_OPERATOR, ids=lambda case: case["id"])
def test_health_is_that_of_the_patterns_operator(case: Case, worker: LuaWorker) -> None:
    result = worker.run(SCRIPTS[case["family"]], {"obj": case["input"], "actionParams": {}}, open_libs=False)
    assert said(meaning(result, case["input"])) == expected(case)

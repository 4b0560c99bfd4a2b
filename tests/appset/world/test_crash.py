"""The controllers die after any write of the creation, update, rollout or deletion of a set: the end is the same, and
nothing is deleted that should stay."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.appset.stage import Dying, Repository, Stage
from tests.appset.world.lives import by_directory, commits, configs, rolled

from syncline.kube.objects import Obj, dig, finalizers, owner_references

SETS_ONLY = "/applications"
"""Writes that count: those of Applications and sets."""
WAIT_S = 300.0
POINTS = int(os.environ.get("SYNCLINE_CRASH_POINTS", "2"))
"""Points at which a life ends; a large number: after each write."""


def facts(one: Stage) -> Any:
    """What must not depend on a crash."""
    apps = {
        name: (found["spec"], found["metadata"].get("labels"), finalizers(found), len(owner_references(found)))
        for name, found in one.apps().items()
    }
    sets = [(found["metadata"]["name"], _settled(found)) for found in one.world.send("GET", _SETS)["items"]]
    return apps, sets, configs(one), commits(one)


_SETS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets"


def _settled(found: Obj) -> Any:
    conditions = [(one["type"], one["status"], one["reason"]) for one in dig(found, "status", "conditions", default=[])]
    states = [
        (one["application"], one["status"], one["step"]) for one in dig(found, "status", "applicationStatus") or ()
    ]
    return conditions, states, dig(found, "status", "resourcesCount", default=0)


def created(one: Stage) -> None:
    one.create(by_directory())


def grown(one: Stage) -> None:
    one.repository.directories = ("a", "c", "d")
    labels = {"metadata": {"labels": {"x": "y"}}}
    refresh = {"argocd.argoproj.io/application-set-refresh": "true"}
    one.change({"spec": {"template": labels}, "metadata": {"annotations": refresh}})


def committed(one: Stage) -> None:
    one.repository.commit = 2
    one.driver.advance(1)


def deleted(one: Stage) -> None:
    one.delete()


def directories() -> Stage:
    return Stage(Repository("a", "b"))


def with_directories(**given: Any) -> Callable[[], Stage]:
    def made() -> Stage:
        one = directories()
        one.create(by_directory(**given))
        one.driver.advance(30)
        return one

    return made


def with_rollout(**given: Any) -> Callable[[], Stage]:
    def made() -> Stage:
        one = Stage(Repository(), enable_progressive_syncs="true")
        one.create(rolled(**given))
        one.driver.advance(60)
        return one

    return made


KEPT = {"syncPolicy": {"applicationsSync": "create-update"}, "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
REVERSE = {"strategy": {"deletionOrder": "Reverse"}}
STRICT = {"annotations": {"syncline.dev/rollout-evidence": "strict"}}


@pytest.mark.parametrize(
    ("begin", "act"),
    [
        pytest.param(directories, created, id="create"),
        pytest.param(with_directories(), grown, id="update"),
        pytest.param(with_rollout(), committed, id="rollout"),
        pytest.param(with_rollout(**STRICT), committed, id="strict rollout"),
        pytest.param(with_directories(), deleted, id="deletion"),
        pytest.param(with_directories(**KEPT), deleted, id="deletion that orphans"),
        pytest.param(with_rollout(**REVERSE), deleted, id="deletion in reverse"),
    ],
)
def test_the_end_is_the_same_whenever_the_controllers_die(
    begin: Callable[[], Stage], act: Callable[[Stage], None]
) -> None:
    def end(last: int) -> tuple[Dying, Any]:
        one = begin()
        seam = one.survive(lambda: act(one), last, WAIT_S, SETS_ONLY)
        return seam, facts(one)

    calm, expected = end(0)
    assert calm.count > 1, calm.log
    for last in range(1, calm.count + 1, max(1, calm.count // POINTS)):
        seam, found = end(last)
        assert found == expected, f"died after write {last} of {calm.count}: {seam.log[-1]}"

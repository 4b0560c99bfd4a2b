"""A controller that may not read a kind: nothing is concluded from what it does not see, and it says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, Simulation, config

from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Forbidden
from syncline.kube.objects import Obj, dig

SECRETS = "/api/v1/namespaces/default/secrets"
TILL: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till"}, "stringData": {"pin": "1"}}
WHY = 'is forbidden: User "syncline" cannot list resource'
CASCADE = ["resources-finalizer.argocd.argoproj.io"]


class Refusing:
    """The API for controllers that may not list some resources."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.refused: set[str] = set()

    def send(self, request: Request) -> Response:
        plural = request.path.rpartition("/")[2]
        if request.method == "GET" and plural in self.refused:
            return Response.refused(Forbidden(f'{plural} {WHY} "{plural}" in API group "" at the cluster scope'))
        return self._inner.send(request)


def blinded(sim: Simulation, *plurals: str) -> Refusing:
    """The controllers begin again and may not list these."""
    made: list[Refusing] = []

    def wrap(inner: Transport) -> Transport:
        made.append(Refusing(inner))
        made[0].refused |= set(plurals)
        return made[0]

    sim.world.start_gitops(wrap)
    sim.driver.settle()
    return made[0]


def look_again(sim: Simulation, seeing: Refusing) -> None:
    """They get their rights back; something happens somewhere."""
    seeing.refused.clear()
    sim.world.send("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "anything"}})
    sim.driver.settle()


def deleted(sim: Simulation) -> None:
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.settle()


def test_what_may_not_be_read_is_neither_missing_nor_pruned_and_the_application_says_why() -> None:
    sim = Simulation(config("a"), TILL, automated={"prune": True})
    sim.driver.advance(30)
    seeing = blinded(sim, "secrets")
    assert sim.sync_status() == "Unknown"
    assert f"Failed to load live state: secrets {WHY}" in sim.conditions()["ComparisonError"]
    sim.source.commit(config("a"), config("b"))
    sim.refresh()
    sim.driver.advance(600)
    assert sim.names(SECRETS) == ["till"] and sim.maps() == ["a"], "nothing is synced in the dark"
    look_again(sim, seeing)
    sim.driver.advance(60)
    assert sim.names(SECRETS) == [] and sim.maps() == ["a", "b"]
    assert sim.conditions() == {} and sim.sync_status() == "Synced"


def test_an_application_without_objects_of_such_a_kind_goes_on() -> None:
    sim = Simulation(config("a"), automated={})
    sim.driver.advance(30)
    blinded(sim, "secrets")
    sim.source.commit(config("a"), config("b"))
    sim.refresh()
    sim.driver.advance(60)
    assert sim.maps() == ["a", "b"] and sim.conditions() == {}


def test_a_cascading_deletion_waits_for_what_may_not_be_read() -> None:
    sim = Simulation(config("a"), TILL)
    sim.sync()
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": CASCADE}})
    seeing = blinded(sim, "secrets")
    deleted(sim)
    sim.driver.advance(600)
    assert WHY in sim.conditions()["DeletionError"] and sim.names(SECRETS) == ["till"]
    look_again(sim, seeing)
    sim.driver.advance(120)
    assert sim.get(f"{APPS}/app") is None and sim.names(SECRETS) == []


@pytest.mark.parametrize(
    ("plural", "what"),
    [
        ("appprojects", "what project default permits is not known"),
        ("secrets", "which clusters are declared is not known"),
    ],
)
def test_a_project_or_cluster_that_may_not_be_read_is_no_error_of_the_spec(plural: str, what: str) -> None:
    sim = Simulation(config("a"), spec={"destination": {"name": "far", "namespace": "default"}})
    blinded(sim, plural)
    sim.refresh()
    found = sim.conditions()
    assert what in found["UnknownError"] and WHY in found["UnknownError"]
    assert "InvalidSpecError" not in found


def test_a_namespace_that_may_not_be_read_is_not_made() -> None:
    sim = Simulation(config("a"), syncOptions=["CreateNamespace=true"])
    blinded(sim, "namespaces")
    sim.refresh()
    assert WHY in sim.conditions()["ComparisonError"]


def test_machine_configs_are_not_changed_where_pools_may_not_be_read() -> None:
    plain = {"spec": {"config": {"ignition": {"version": "3.4.0"}}}, "metadata": {"name": "99-x"}}
    sim = Simulation(plain | {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig"})
    sim.world.start_machine_config()
    sim.driver.settle()
    blinded(sim, "machineconfigpools")
    sim.refresh()
    assert WHY in sim.conditions()["ComparisonError"]


def test_a_condition_on_what_may_not_be_read_says_so_and_waits() -> None:
    wait = {"annotations": {"syncline.dev/wait-for": "{kind: Endpoints, name: db}"}}
    waiting: Any = config("a")
    sim = Simulation(waiting | {"metadata": waiting["metadata"] | wait})
    blinded(sim, "endpoints")
    sim.begin()
    sim.driver.advance(60)
    message = str(dig(sim.state(), "message"))
    assert "may not be read" in message and "is not there" not in message
    assert sim.maps() == []

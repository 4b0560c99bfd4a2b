"""A controller that may not read a kind: nothing is concluded from what it does not see, and it says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.play import APPS, Play, config

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


def blinded(play: Play, *plurals: str) -> Refusing:
    """The controllers begin again and may not list these."""
    made: list[Refusing] = []

    def wrap(inner: Transport) -> Transport:
        made.append(Refusing(inner))
        made[0].refused |= set(plurals)
        return made[0]

    play.world.start_gitops(wrap)
    play.driver.settle()
    return made[0]


def look_again(play: Play, seeing: Refusing) -> None:
    """They get their rights back; something happens somewhere."""
    seeing.refused.clear()
    play.world.send("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "anything"}})
    play.driver.settle()


def deleted(play: Play) -> None:
    play.world.send("DELETE", f"{APPS}/app")
    play.driver.settle()


def test_what_may_not_be_read_is_neither_missing_nor_pruned_and_the_application_says_why() -> None:
    play = Play(config("a"), TILL, automated={"prune": True})
    play.driver.advance(30)
    seeing = blinded(play, "secrets")
    assert play.sync_status() == "Unknown"
    assert f"Failed to load live state: secrets {WHY}" in play.conditions()["ComparisonError"]
    play.source.commit(config("a"), config("b"))
    play.refresh()
    play.driver.advance(600)
    assert play.names(SECRETS) == ["till"] and play.maps() == ["a"], "nothing is synced in the dark"
    look_again(play, seeing)
    play.driver.advance(60)
    assert play.names(SECRETS) == [] and play.maps() == ["a", "b"]
    assert play.conditions() == {} and play.sync_status() == "Synced"


def test_an_application_without_objects_of_such_a_kind_goes_on() -> None:
    play = Play(config("a"), automated={})
    play.driver.advance(30)
    blinded(play, "secrets")
    play.source.commit(config("a"), config("b"))
    play.refresh()
    play.driver.advance(60)
    assert play.maps() == ["a", "b"] and play.conditions() == {}


def test_a_cascading_deletion_waits_for_what_may_not_be_read() -> None:
    play = Play(config("a"), TILL)
    play.sync()
    play.patch(f"{APPS}/app", {"metadata": {"finalizers": CASCADE}})
    seeing = blinded(play, "secrets")
    deleted(play)
    play.driver.advance(600)
    assert WHY in play.conditions()["DeletionError"] and play.names(SECRETS) == ["till"]
    look_again(play, seeing)
    play.driver.advance(120)
    assert play.get(f"{APPS}/app") is None and play.names(SECRETS) == []


@pytest.mark.parametrize(
    ("plural", "what"),
    [
        ("appprojects", "what project default permits is not known"),
        ("secrets", "which clusters are declared is not known"),
    ],
)
def test_a_project_or_cluster_that_may_not_be_read_is_no_error_of_the_spec(plural: str, what: str) -> None:
    play = Play(config("a"), spec={"destination": {"name": "far", "namespace": "default"}})
    blinded(play, plural)
    play.refresh()
    found = play.conditions()
    assert what in found["UnknownError"] and WHY in found["UnknownError"]
    assert "InvalidSpecError" not in found


def test_a_namespace_that_may_not_be_read_is_not_made() -> None:
    play = Play(config("a"), syncOptions=["CreateNamespace=true"])
    blinded(play, "namespaces")
    play.refresh()
    assert WHY in play.conditions()["ComparisonError"]


def test_machine_configs_are_not_changed_where_pools_may_not_be_read() -> None:
    plain = {"spec": {"config": {"ignition": {"version": "3.4.0"}}}, "metadata": {"name": "99-x"}}
    play = Play(plain | {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig"})
    play.world.start_machine_config()
    play.driver.settle()
    blinded(play, "machineconfigpools")
    play.refresh()
    assert WHY in play.conditions()["ComparisonError"]


def test_a_condition_on_what_may_not_be_read_says_so_and_waits() -> None:
    wait = {"annotations": {"syncline.dev/wait-for": "{kind: Endpoints, name: db}"}}
    waiting: Any = config("a")
    play = Play(waiting | {"metadata": waiting["metadata"] | wait})
    blinded(play, "endpoints")
    play.begin()
    play.driver.advance(60)
    message = str(dig(play.state(), "message"))
    assert "may not be read" in message and "is not there" not in message
    assert play.maps() == []

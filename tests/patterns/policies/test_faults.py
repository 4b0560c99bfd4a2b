"""Policies among faults: the agent is killed after each of its writes, the hub's controllers after each of theirs, and
requests fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.fleet.agents import Counted
from tests.patterns.policies.world import CONFIGURATION, POLICY, Policies, made, policy, template

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Conflict, Unavailable
from syncline.kube.objects import Obj
from syncline.rehearsal.seams import Killed

MAPS = "/api/v1/namespaces/default/configmaps"
MOST_WRITES = 60


def config(name: str, **data: str) -> Obj:
    return {**made("v1", "ConfigMap", name, "default"), "data": data}


def is_write(request: Request) -> bool:
    return request.method != "GET" and not any(part in request.path for part in ("leases", "managedclusters", "events"))


def story(fleet: Policies, name: str) -> list[Callable[[], Any]]:
    """A policy comes, its object is changed on the cluster, the policy changes, a second one comes and goes."""
    prune = {"pruneObjectBehavior": "DeleteIfCreated"}

    def come() -> None:
        fleet.post(policy(name, template(name, config(f"{name}-a", v="1"), config(f"{name}-b", v="1"), **prune)))
        fleet.bind(name)

    def change() -> None:
        entry = {"objectDefinition": template(name, config(f"{name}-a", v="2"), **prune)}
        fleet.patch(name, **{"policy-templates": [entry]})
        fleet.post(policy(f"{name}-gone", template(f"{name}-gone", config(f"{name}-c", v="1"), **prune)))
        fleet.bind(f"{name}-gone")

    member = fleet.members["c1"]
    return [
        come,
        lambda: member.send("PATCH", f"{MAPS}/{name}-a", {"data": {"v": "9"}}),
        change,
        lambda: fleet.hub.send("DELETE", f"{POLICY.format('policies')}/{name}-gone"),
    ]


def state(fleet: Policies, name: str) -> Any:
    member = fleet.members["c1"]
    a = member.get(f"{MAPS}/{name}-a")["data"]
    gone = [member.absent(f"{MAPS}/{name}-{one}") for one in "bc"]
    gone += [
        member.absent(f"{kind.format('c1')}/{each}")
        for kind, each in (
            (CONFIGURATION, f"{name}-gone"),
            (POLICY, f"policies.{name}-gone"),
        )
    ]
    gone.append(fleet.hub.absent(f"{POLICY.format('c1')}/policies.{name}-gone"))
    root = fleet.root(name)["status"]
    return a, gone, root["compliant"], fleet.messages(name, "c1")[0].partition(";")[0]


END = ({"v": "2"}, [True] * 5, "Compliant", "Compliant")


def run(fleet: Policies, name: str, again: Callable[[], None], step_s: float = 12.0) -> None:
    for step in story(fleet, name):
        try:
            step()
            fleet.time.advance(step_s)
        except Killed:
            again()
            fleet.time.advance(1)
    fleet.time.advance(60)


class Crash:
    """Kills who writes right after the n-th write."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, inner: Any) -> Counted:
        counted = Counted(inner)

        def before(request: Request) -> Response | None:
            if not is_write(request) or not self.left:
                return None
            self.left -= 1
            if self.left:
                return None
            inner.send(request)
            raise Killed(request.describe())

        counted.before = before
        return counted


@pytest.fixture(scope="module")
def fleet() -> Iterator[Policies]:
    yield Policies("c1")


def test_an_agent_killed_after_any_of_its_writes_ends_in_the_same_state(fleet: Policies) -> None:
    number = 0
    for number in range(1, MOST_WRITES, 5):
        crash = Crash(number)
        fleet.start_agent("c1", wrap_hub=crash, wrap_own=crash)
        run(fleet, f"k{number}", lambda crash=crash: fleet.start_agent("c1", wrap_hub=crash, wrap_own=crash))  # type: ignore[misc]
        assert state(fleet, f"k{number}") == END, number
        fleet.hub.send("DELETE", f"{POLICY.format('policies')}/k{number}")
        if crash.left:
            break
    assert 15 < number < MOST_WRITES - 1


def test_controllers_of_the_hub_killed_after_any_of_their_writes_end_in_the_same_state(fleet: Policies) -> None:
    fleet.start_agent("c1")
    number = 0
    for number in range(1, MOST_WRITES, 3):
        crash = Crash(number)
        fleet.start_policies(crash)
        run(fleet, f"h{number}", lambda crash=crash: fleet.start_policies(crash))  # type: ignore[misc]
        assert state(fleet, f"h{number}") == END, number
        fleet.hub.send("DELETE", f"{POLICY.format('policies')}/h{number}")
        if crash.left:
            break
    fleet.start_policies()
    assert 3 < number < MOST_WRITES - 1


@pytest.mark.parametrize(
    "error",
    [Conflict("the object has been modified (injected)"), Unavailable("injected")],
    ids=["409", "503"],
)
def test_refused_writes_change_nothing_in_the_end(fleet: Policies, error: ApiError) -> None:
    counted = 0

    def refusing(inner: Any) -> Counted:
        made = Counted(inner)

        def before(request: Request) -> Response | None:
            nonlocal counted
            if not is_write(request):
                return None
            counted += 1
            return Response.refused(error) if counted % 3 == 1 else None

        made.before = before
        return made

    fleet.start_agent("c1", wrap_hub=refusing, wrap_own=refusing)
    run(fleet, f"e{error.code}", lambda: None, 60.0)
    fleet.start_agent("c1")
    fleet.time.advance(60)
    assert state(fleet, f"e{error.code}") == END
    assert counted > 10

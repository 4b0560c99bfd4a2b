"""Actions of a step side by side: how many, in which order their results are, and what a failure does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from syncline.base.action import Action
from syncline.control.executor import execute, run_in_place
from syncline.control.manager import AT_ONCE, drive
from syncline.control.plan import Plan, Result
from syncline.kube.client import Batch, Request, Response
from syncline.kube.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Ask(Action):
    """Two requests; the answer of the second is the result."""

    number: int
    reason: str = "to see"

    def describe(self) -> str:
        return f"ask {self.number}"


class Asking:
    def handle(self, action: Ask) -> Generator[Request, Response, Any]:
        yield Request("GET", f"/first/{action.number}")
        answer = yield Request("GET", f"/second/{action.number}")
        return answer.or_raise()


class Slow:
    """Answers after more turns the earlier it is asked, so that the last is the first to end."""

    def __init__(self, refuse: str = "", fail: str = "") -> None:
        self.refuse, self.fail = refuse, fail
        self.asked: list[str] = []
        self.now = self.most = 0

    def send_at_once(self, request: Request) -> Response:
        self.asked.append(request.path)
        if request.path == self.fail:
            raise ZeroDivisionError(request.path)
        if request.path == self.refuse:
            return Response.refused(Unavailable("not now"))
        return Response.of(200, request.path)

    async def send(self, request: Request) -> Response:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(max(60 - len(self.asked), 1)):
            await asyncio.sleep(0)
        self.now -= 1
        return self.send_at_once(request)

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        yield []


class InPlace:
    def __init__(self, inner: Slow) -> None:
        self.inner = inner

    def send(self, request: Request) -> Response:
        return self.inner.send_at_once(request)


def plan(count: int, *, together: bool) -> Plan:
    return Plan((tuple(Ask(number) for number in range(count)), (Ask(1000),)), together=together)


def performed(port: Slow, asked: Plan) -> tuple[Result, ...]:
    return asyncio.run(drive(execute(asked, lambda _cluster: {Ask: Asking()}), port))


@pytest.mark.parametrize(("together", "most"), [(True, AT_ONCE), (False, 1)])
def test_a_bounded_number_is_on_its_way_at_once_and_results_are_in_order(together: bool, most: int) -> None:
    port = Slow()
    results = performed(port, plan(3 * AT_ONCE, together=together))
    assert port.most == most
    assert [result.value for result in results] == [f"/second/{number}" for number in (*range(3 * AT_ONCE), 1000)]


def test_the_next_step_begins_when_all_of_one_have_ended() -> None:
    port = Slow()
    performed(port, plan(AT_ONCE, together=True))
    assert port.asked[-2:] == ["/first/1000", "/second/1000"]


def test_a_refusal_keeps_no_other_from_being_tried_and_ends_the_steps() -> None:
    port = Slow(refuse="/second/3")
    results = performed(port, plan(20, together=True))
    assert [result.ok for result in results] == [number != 3 for number in range(20)]


def test_a_defect_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        performed(Slow(fail="/first/3"), plan(20, together=True))


def test_in_virtual_time_they_are_performed_in_their_order() -> None:
    orders = []
    for together in (True, False):
        port = Slow()
        run_in_place(execute(plan(5, together=together), lambda _cluster: {Ask: Asking()}), InPlace(port))
        orders.append(port.asked)
    assert orders[0] == orders[1]
    assert orders[0][:4] == ["/first/0", "/second/0", "/first/1", "/second/1"]


def test_a_pass_that_is_given_up_takes_along_what_is_on_its_way() -> None:
    async def given_up() -> int:
        port = Slow()
        passing = asyncio.create_task(drive(execute(plan(20, together=True), lambda _cluster: {Ask: Asking()}), port))
        while port.now < AT_ONCE:
            await asyncio.sleep(0)
        passing.cancel()
        await asyncio.gather(passing, return_exceptions=True)
        asked = len(port.asked)
        for _ in range(200):
            await asyncio.sleep(0)
        return len(port.asked) - asked

    assert asyncio.run(given_up()) == 0

"""The controllers of operators die with a write again and again, which counts or is lost: the end is the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.patterns.operating import Operators
from tests.patterns.test_operators_serving import CSVS, SERVING, a_bundle, hooks, served, started

from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@dataclass(slots=True)
class Mortal:
    """A connection of a process that dies with a write: it counts, or is lost, and nothing is answered from then on."""

    inner: Transport
    counts: bool
    lives: int
    dead: bool = False

    def send(self, request: Request) -> Response:
        if request.method != "GET" and not self.dead:
            self.lives -= 1
            self.dead = self.lives < 0
            if self.dead and self.counts:
                self.inner.send(request)
        return Response.refused(Unavailable("it is dead")) if self.dead else self.inner.send(request)


@dataclass(slots=True)
class Deaths:
    """Gives each process a connection, with which it dies at a write; the numbers are of one process after another."""

    counts: bool
    every: tuple[int, ...]
    now: Mortal | None = None
    begun: list[Mortal] = field(default_factory=list)

    def __call__(self, inner: Transport) -> Transport:
        self.now = Mortal(inner, self.counts, self.every[len(self.begun) % len(self.every)])
        self.begun.append(self.now)
        return self.now

    def run(self, world: Operators, seconds: float) -> None:
        """Let time pass; a process that died is started again."""
        ends = world.clock.now().timestamp() + seconds
        while world.clock.now().timestamp() < ends:
            world.time.advance(0.5)
            if self.now is not None and self.now.dead:
                world.restart()


@pytest.mark.parametrize(("every", "counts"), [((3, 17, 6, 23, 1, 29), True), ((1, 19, 8, 26, 4, 31), False)])
def test_an_upgrade_of_what_serves_ends_the_same_when_its_process_dies_again_and_again(
    every: tuple[int, ...], counts: bool
) -> None:
    deaths = Deaths(counts, every)
    world = started(a_bundle("1.0.0", SERVING), a_bundle("1.1.0", SERVING), wrap=deaths)
    deaths.run(world, 90)
    served(world)
    assert len(deaths.begun) > 4
    roles = [one["metadata"]["name"] for one in world.get(ROLES)["items"]]
    assert {"widgets.example.com-v1-admin", "gauges-v1-view"} <= set(roles)
    assert len([name for name in roles if name.startswith("olm.og.group.")]) == 3
    world.send("DELETE", f"{CSVS}/widgets.v1.1.0")
    deaths.run(world, 20)
    assert hooks(world, "validatingwebhookconfigurations") == []
    assert world.absent("/api/v1/namespaces/team/secrets/manager-service-cert")

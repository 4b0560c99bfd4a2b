"""Works under drawn changes and faults: whatever happens, the cluster ends as the works on the hub say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fleet.agents import APPLIED, Place, maps
from tests.fleet.world import Fleet, config_map

from syncline.base.entropy import Entropy
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Conflict, InternalError, Unavailable
from syncline.rehearsal.seams import FaultRates, FaultyTransport

STEPS = 20
RATES = FaultRates(conflict=0.05, stale_list=0.2, lost_watch=0.1, delayed_watch=0.2, duplicate=0.2)
WORKS = ("w0", "w1", "w2")


@dataclass(slots=True)
class Flaky:
    """Refuses some requests, and loses the answers of others."""

    inner: Transport
    draws: Entropy
    rate: float = 0.08

    def send(self, request: Request) -> Response:
        if "watch" in request.query or self.draws.uniform(0, 1) >= self.rate:
            return self.inner.send(request)
        match self.draws.choice(["lost", "failed", "conflict", "unanswered"]):
            case "lost":
                return Response.refused(Unavailable("the request was lost"))
            case "failed":
                return Response.refused(InternalError("the server failed"))
            case "conflict" if request.method != "GET":
                return Response.refused(Conflict("the object has been modified (injected)"))
        self.inner.send(request)
        return Response.refused(Unavailable("the answer was lost"))


@dataclass(slots=True)
class Drawn:
    """A fleet with faults, and what its works shall be: the objects of each with their value."""

    place: Place
    draws: Entropy
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)
    faulty: list[FaultyTransport] = field(default_factory=list)
    flaky: list[Flaky] = field(default_factory=list)

    def wrap(self, inner: Transport) -> Transport:
        fleet = self.place.fleet
        faulty = FaultyTransport(inner, fleet.clock, self.draws.fork(f"faults/{len(self.faulty)}"), RATES)
        fleet.time.add(faulty)
        self.faulty.append(faulty)
        self.flaky.append(Flaky(faulty, self.draws.fork(f"requests/{len(self.flaky)}")))
        return self.flaky[-1]

    def restart(self, _name: str) -> None:
        self.place.fleet.start_agent("c1", wrap_hub=self.wrap, wrap_own=self.wrap)

    def write(self, name: str) -> None:
        values = {f"{name}-{one}": str(self.draws.randrange(100)) for one in range(4) if self.draws.uniform(0, 1) < 0.6}
        made = [config_map(one, v=value) for one, value in (values or {f"{name}-0": "0"}).items()]
        if name in self.wanted:
            self.place.manifests(name, *made)
        elif self.place.gone(name):
            self.place.work(name, *made)
        else:
            return
        self.wanted[name] = {one["metadata"]["name"]: one["data"]["v"] for one in made}

    def remove(self, name: str) -> None:
        if self.wanted.pop(name, None) is not None:
            self.place.delete(name)

    def disturb(self, name: str) -> None:
        for one in list(self.wanted.get(name, ()))[:1]:
            if self.place.there(maps(one)) is not None:
                verb, body = self.draws.choice([("DELETE", None), ("PATCH", {"data": {"v": "theirs"}})])
                self.place.member.send(verb, maps(one), body)

    def cut(self, _name: str) -> None:
        cable = self.draws.choice([self.place.member.hub_cable, self.place.member.own_cable])
        cable.cut()
        self.place.settle(self.draws.uniform(1, 200))
        cable.mend()

    def heal(self) -> None:
        for one in self.flaky:
            one.rate = 0.0
        for each in self.faulty:
            each.heal()

    def found(self) -> Any:
        place = self.place
        own = [one for one in place.member.get("/api/v1/configmaps")["items"] if one["metadata"]["name"][:1] == "w"]
        inventories = sorted(one["metadata"]["name"].rpartition("-")[2] for one in place.member.get(APPLIED)["items"])
        left = [name for name in WORKS if not place.gone(name)]
        conditions = {place.condition(name, kind) for name in self.wanted for kind in ("Applied", "Available")}
        return {one["metadata"]["name"]: one["data"]["v"] for one in own}, inventories, left, conditions

    def expected(self) -> Any:
        names = sorted(self.wanted)
        good = {("True", "AppliedManifestWorkComplete"), ("True", "ResourcesAvailable")} if names else set()
        return {one: value for work in self.wanted.values() for one, value in work.items()}, names, names, good


@pytest.mark.parametrize("seed", [3, 17])
def test_the_cluster_ends_as_the_works_say(seed: int) -> None:
    drawn = Drawn(Place(Fleet("c1", seed=seed)), Entropy(seed))
    drawn.restart("")
    often: list[Callable[[str], None]] = [drawn.write] * 9 + [drawn.remove] * 3 + [drawn.disturb] * 6
    for _ in range(STEPS):
        drawn.draws.choice([*often, drawn.cut, drawn.restart])(drawn.draws.choice(list(WORKS)))
        drawn.place.settle(drawn.draws.choice([0, 0.1, 1, 5, 30]))
    drawn.heal()
    drawn.place.settle(900)
    assert drawn.found() == drawn.expected()
    assert sum(sum(one.counts.values()) for one in drawn.faulty) > 3

"""What is left on a cluster when its agent leaves without its hub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.fleet.world import HUB_URL, Fleet, Member, config_map

from syncline.hosts.fleet.leaving import applied_gone
from syncline.hosts.fleet.places import Joining
from syncline.kube.client import Batch, Request, Response

MAP = "/api/v1/namespaces/default/configmaps/m"
APPLIED = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"


@dataclass
class Port:
    """The cluster, whose own controllers work after each request."""

    member: Member

    async def send(self, request: Request) -> Response:
        answer = self.member.admin.send(request)
        self.member.time.settle()
        return answer

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        raise AssertionError("not watched")


@pytest.mark.parametrize("keep", [False, True])
def test_objects_of_works_go_or_stay_and_their_inventory_goes(keep: bool) -> None:
    fleet = Fleet("c1")
    fleet.work("c1", "w", config_map("m"))
    fleet.time.advance(30)
    member = fleet.members["c1"]
    fleet.stop_agent("c1")
    other = Joining("https://other.test", "c1", "agent1")
    assert asyncio.run(applied_gone(Port(member), other, keep_objects=keep)) == 0
    assert not member.absent(MAP)
    mine = Joining(HUB_URL, "c1", "agent1")
    assert asyncio.run(applied_gone(Port(member), mine, keep_objects=keep)) == 1
    fleet.time.advance(30)
    assert member.get(APPLIED)["items"] == []
    assert member.absent(MAP) is not keep

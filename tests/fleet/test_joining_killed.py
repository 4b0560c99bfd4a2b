"""A join that is killed at any of its requests goes on where it was: one cluster, one request, one certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fleet.world import CLUSTERS, Fleet

from syncline.assembly.fleet.hub import BOOTSTRAP_NAMESPACE
from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.cluster.access.users import service_account_user
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.spoke.registration.certificates import identity
from syncline.fleet.spoke.registration.proposing import Own
from syncline.hosts.fleet.joining import Join
from syncline.hosts.fleet.places import Joining, Place, place_of
from syncline.kube.certificates import approved, identity_of, is_of_key
from syncline.kube.client import Batch, Request, Response, Transport
from syncline.kube.objects import labels_of, name_of
from syncline.kube.transport.kubeconfig import ClusterAccess

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVER = "https://hub.test:6443"
MOST = 12
"""More requests than a join sends."""


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Port:
    """The hub; the process ends at request ``left``, before the hub gets it or after."""

    hub: Transport
    left: int = 1_000
    after: bool = False

    async def send(self, request: Request) -> Response:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        answer = self.hub.send(request)
        if self.left == 0:
            raise Killed
        return answer

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        raise AssertionError("a join watches nothing")


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return Fleet()


def join_of(place: Place, name: str, fleet: Fleet) -> Join:
    joining = place.joining() or Joining(SERVER, name, "a1")
    place.keep_joining(joining)
    return Join(place, joining, Own(name, uid=f"uid-{name}"), fleet.clock, lambda _line: None, entropy=Entropy(name))


def killed(join: Join, port: Port) -> bool:
    """Do all steps that are possible; return whether the process was killed."""
    access = ClusterAccess(SERVER, token=Secret("t"))
    try:
        for _ in range(3):
            if asyncio.run(join.step(port, access)) is None:
                return False
    except Killed:
        return True
    return False


def open_gates(fleet: Fleet, name: str) -> None:
    for csr in fleet.hub.get(REQUESTS)["items"]:
        if labels_of(csr).get(CLUSTER_NAME) == name and not csr.get("status", {}).get("conditions"):
            fleet.hub.send("PUT", f"{REQUESTS}/{name_of(csr)}/approval", approved(csr, "Test", "a test"))
    fleet.hub.send("PATCH", f"{CLUSTERS}/{name}", {"spec": {"hubAcceptsClient": True}})
    fleet.time.advance(2)


@pytest.mark.parametrize("after", [False, True], ids=["before the hub got it", "after"])
def test_a_join_that_is_killed_at_any_request_goes_on_where_it_was(fleet: Fleet, tmp_path: Path, after: bool) -> None:
    hub = fleet.hub.core.transport(service_account_user(BOOTSTRAP_NAMESPACE, BOOTSTRAP_ACCOUNT))
    schedules = 0
    for gates_open in (False, True):
        for kill_at in range(1, MOST):
            name = f"k{kill_at}-{int(gates_open)}-{int(after)}"
            place = place_of(tmp_path, SERVER, name)
            if gates_open:  # killed after people opened both gates
                killed(join_of(place, name, fleet), Port(hub))
                open_gates(fleet, name)
            if not killed(join_of(place, name, fleet), Port(hub, kill_at, after)):
                break
            schedules += 1
            killed(join_of(place, name, fleet), Port(hub))
            open_gates(fleet, name)
            assert not killed(join_of(place, name, fleet), Port(hub))
            mine = [one for one in fleet.hub.get(REQUESTS)["items"] if labels_of(one).get(CLUSTER_NAME) == name]
            assert len(mine) == 1, name
            access = place.hub()
            assert access is not None
            assert access.key_pem is not None
            assert identity_of(access.certificate_pem) == identity(name, "a1")
            assert is_of_key(access.certificate_pem, access.key_pem)
            assert place.pending() is None
    assert schedules >= 6

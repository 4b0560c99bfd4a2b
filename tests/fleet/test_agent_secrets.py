"""An agent's credentials in Secrets of its own cluster, by upstream's names and keys."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncline.assembly.embedded.core import build_core
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.cluster.access.pki import create_keys
from syncline.cluster.storage.store import Store
from syncline.fleet.spoke.registration.certificates import identity
from syncline.fleet.spoke.registration.invitation import Invitation
from syncline.hosts.fleet.places import Joining, PlaceError, place_of
from syncline.hosts.fleet.secrets import SecretKeep
from syncline.kube.client import Batch, Request, Response, Transport
from syncline.kube.transport.kubeconfig import ClusterAccess

HUB = "https://hub.test:6443"
PATH = "/api/v1/namespaces/open-cluster-management-agent/secrets"


@dataclass
class Port:
    transport: Transport

    async def send(self, request: Request) -> Response:
        return self.transport.send(request)

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        raise AssertionError("not watched")


@pytest.fixture
def port() -> Port:
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(1))
    core.bootstrap(port=6443)
    return Port(core.transport())


def data(port: Port, name: str) -> dict[str, str]:
    found = port.transport.send(Request("GET", f"{PATH}/{name}")).or_raise()["data"]
    return {key: base64.b64decode(text).decode() for key, text in found.items()}


def test_what_an_agent_keeps_is_what_upstreams_agents_read_and_comes_back(port: Port, tmp_path: Path) -> None:
    place, joining = place_of(tmp_path / "a", HUB, "c1"), Joining(HUB, "c1", "a1", keep="secret", accepted="yes")
    place.keep_invitation(Invitation(HUB, Secret("t0ken"), "CA"), "c1")
    who = identity("c1", "a1")
    pair = create_keys(VirtualClock().now()).authority.issue(
        who.user, now=VirtualClock().now(), organizations=who.groups
    )
    place.keep_hub(ClusterAccess(HUB, ca_pem="CA"), pair.certificate_pem, pair.key_pem, "c1")
    keep = SecretKeep(port)
    asyncio.run(keep.push(place, joining))
    asyncio.run(keep.push(place, joining))
    shown = data(port, "hub-kubeconfig-secret")
    assert sorted(shown) == ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]
    assert (shown["cluster-name"], shown["agent-name"]) == ("c1", "a1")
    user = json.loads(shown["kubeconfig"])["users"][0]["user"]
    assert user == {"client-certificate": "tls.crt", "client-key": "tls.key"}
    assert "t0ken" in data(port, "bootstrap-hub-kubeconfig")["kubeconfig"]
    elsewhere, again = asyncio.run(keep.pull(tmp_path / "b"))
    assert (again.hub, again.cluster, again.agent, again.accepted) == (HUB, "c1", "a1", "yes")
    access = elsewhere.hub()
    assert access is not None
    assert (access.certificate_pem, access.key_pem, access.server) == (pair.certificate_pem, pair.key_pem, HUB)
    asyncio.run(keep.remove())
    assert port.transport.send(Request("GET", PATH)).obj["items"] == []


def test_a_pod_with_the_line_alone_begins_to_join(port: Port, tmp_path: Path) -> None:
    first = place_of(tmp_path / "a", HUB, "c1")
    first.keep_invitation(Invitation(HUB, Secret("t0ken"), "CA"), "c1")
    asyncio.run(SecretKeep(port).push(first, Joining(HUB, "c1", "a1")))
    place, joining = asyncio.run(SecretKeep(port).pull(tmp_path / "b", "c2"))
    assert (joining.cluster, joining.accepted) == ("c2", "")
    assert place.hub() is None
    bootstrap = place.bootstrap()
    assert bootstrap is not None
    assert bootstrap.token == Secret("t0ken")


def test_without_a_secret_it_says_which_one_is_missing(port: Port, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="bootstrap-hub-kubeconfig has no key kubeconfig"):
        asyncio.run(SecretKeep(port).pull(tmp_path, "c1"))

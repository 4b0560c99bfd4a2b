"""Rotation of an agent's certificate, with requests that the embedded hub signs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.fleet.world import Fleet

from syncline.base.secret import Secret
from syncline.control.executor import run_in_place
from syncline.fleet.spoke.registration.certificates import identity
from syncline.fleet.spoke.registration.rotation import Progress, Rotate, Rotating
from syncline.kube.certificates import approved, identity_of, is_of_key
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj, name_of

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@dataclass
class Kept:
    """Credentials in memory."""

    pem: str = ""
    key: Secret = field(default_factory=lambda: Secret(""))

    def certificate(self) -> str:
        return self.pem

    def store(self, certificate: str, key: Secret) -> None:
        self.pem, self.key = certificate, key


@dataclass
class Scene:
    fleet: Fleet
    kept: Kept
    rotating: Rotating
    agent: Transport

    def step(self) -> Progress:
        return run_in_place(self.rotating.handle(Rotate("a test")), self.agent)

    def requests(self) -> list[Obj]:
        found: list[Obj] = self.fleet.hub.get(REQUESTS)["items"]
        return found

    def answer(self, request: Obj) -> None:
        self.fleet.hub.send("PUT", f"{REQUESTS}/{name_of(request)}/approval", request)
        self.fleet.time.advance(5)


@pytest.fixture
def scene() -> Scene:
    fleet, kept = Fleet("c1"), Kept()
    # Not as the agent itself, whose request the hub would approve.
    return Scene(fleet, kept, Rotating("c1", "agent1", kept), fleet.hub.admin)


def test_b9_an_agent_asks_waits_for_its_approval_and_stores_what_was_issued(scene: Scene) -> None:
    scene.step()
    (request,) = scene.requests()
    assert name_of(request).startswith("c1-")
    scene.fleet.time.advance(5)
    scene.answer(approved(scene.fleet.hub.get(f"{REQUESTS}/{name_of(request)}"), "Test", "a test"))
    progress = scene.step()
    assert progress.condition is not None
    assert progress.condition["reason"] == "ClientCertificateUpdated"
    assert identity_of(scene.kept.pem) == identity("c1", "agent1")
    assert is_of_key(scene.kept.pem, scene.kept.key)
    assert scene.rotating.asked is None


def test_b10_an_agent_with_ten_requests_on_the_hub_makes_no_further_one(scene: Scene) -> None:
    for _ in range(10):
        scene.rotating.asked = None
        scene.step()
    assert len(scene.requests()) == 10
    scene.rotating.asked = None
    progress = scene.step()
    assert len(scene.requests()) == 10
    assert progress.condition is not None
    assert progress.condition["message"] == "Stop creating csr since there are too many csr created already on hub"


@pytest.mark.parametrize("verdict", ["Denied", "gone"])
def test_a_request_that_ends_without_a_certificate_is_reported_and_made_again(scene: Scene, verdict: str) -> None:
    scene.step()
    scene.fleet.time.advance(5)
    path = f"{REQUESTS}/{scene.rotating.asked.name if scene.rotating.asked else ''}"
    if verdict == "gone":
        scene.fleet.hub.admin.send(Request("DELETE", path)).or_raise()
    else:
        denied = {"type": "Denied", "status": "True", "reason": "Test", "message": "not now"}
        scene.answer({**scene.fleet.hub.get(path), "status": {"conditions": [denied]}})
    progress = scene.step()
    assert progress.condition is not None
    assert progress.condition["reason"] == "ClientCertificateUpdateFailed"
    assert scene.kept.pem == ""
    scene.step()
    assert scene.rotating.asked is not None

"""Which certificate requests of add-ons the hub approves: those that the add-on's manager wants, of its own cluster."""

from __future__ import annotations

import pytest

from syncline.fleet.addons import default_groups, default_user
from syncline.fleet.hub.addons.requests import problem_of
from syncline.kube.certificates import Identity, certificate_request, client_key
from syncline.kube.kinds.addonversions import CLIENT_SIGNER
from syncline.kube.objects import Obj

USER, GROUPS = default_user("c1", "a", "a-agent"), tuple(default_groups("c1", "a"))
AGENT = "system:open-cluster-management:c1:agent1"
CLIENT: Obj = {"signerName": CLIENT_SIGNER, "subject": {"user": USER, "groups": list(GROUPS)}}
OTHER: Obj = {"signerName": "example.com/s", "subject": {"user": "u", "organizationUnit": ["o"]}}
KEY = client_key()


def request(
    user: str = USER,
    groups: tuple[str, ...] = GROUPS,
    *,
    by: str = AGENT,
    signer: str = CLIENT_SIGNER,
    units: tuple[str, ...] = (),
    **labels: str,
) -> Obj:
    found = {
        "open-cluster-management.io/cluster-name": labels.get("cluster", "c1"),
        "open-cluster-management.io/addon-name": labels.get("addon", "a"),
    }
    made = certificate_request(Identity(user, groups), KEY, signer, {"name": "addon-x", "labels": found}, units=units)
    made["spec"]["username"] = by
    return made


CASES: dict[str, tuple[Obj, str]] = {
    "the agent's names are approved": (request(), ""),
    "so they are with the group of everybody, as older agents ask": (
        request(groups=(*GROUPS, "system:authenticated")),
        "",
    ),
    "a signer of the add-on's own has its own subject": (
        request("u", (), signer="example.com/s", units=("o",)),
        "",
    ),
    "another user is not": (request("admin"), "it is for user"),
    "another group is not": (request(groups=(*GROUPS, "system:masters")), "it is for user"),
    "a group less is not": (request(groups=GROUPS[:1]), "it is for user"),
    "another unit is not": (request("u", (), signer="example.com/s", units=("p",)), "it is for user"),
    "a signer that the add-on does not use is not": (
        request(signer="example.com/t"),
        "add-on a does not register with signer 'example.com/t'",
    ),
    "an agent of another cluster is not": (
        request(by="system:open-cluster-management:c2:agent1"),
        "user 'system:open-cluster-management:c2:agent1' is not an agent of cluster c1",
    ),
    "nor one whose cluster only begins alike": (
        request(by="system:open-cluster-management:c10:agent1"),
        "user 'system:open-cluster-management:c10:agent1' is not an agent of cluster c1",
    ),
    "a person is not": (request(by="admin"), "user 'admin' is not an agent of cluster c1"),
    "a label alone makes no cluster": (
        request(cluster="c2"),
        f"user {AGENT!r} is not an agent of cluster c2",
    ),
}


@pytest.mark.parametrize(("csr", "problem"), CASES.values(), ids=CASES)
def test_a_request_is_judged(csr: Obj, problem: str) -> None:
    found = problem_of(csr, (CLIENT, OTHER))
    assert found.startswith(problem) if problem else not found


def test_a_request_that_is_none_is_not_approved() -> None:
    csr = request()
    csr["spec"]["request"] = "AAAA"
    assert problem_of(csr, (CLIENT,)).startswith("its request cannot be read")

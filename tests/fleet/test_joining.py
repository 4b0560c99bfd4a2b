"""Joining a hub: the line, the proposed cluster, names that are taken, the two gates."""

from __future__ import annotations

import pytest

from syncline.base.secret import Secret
from syncline.fleet.conditions import condition
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.spoke.registration.invitation import Invitation, InvitationError, read_invitation
from syncline.fleet.spoke.registration.proposing import (
    CLUSTER_UID,
    Own,
    name_problem,
    proposed,
    refusal,
    waiting_for,
    with_config,
)
from syncline.hosts.fleet.joining import may_pass
from syncline.kube.errors import ApiError, Forbidden, NotFound, TooManyRequests, Unauthorized, Unavailable
from syncline.kube.objects import Obj

INVITATION = Invitation(
    "https://hub.example:6443", Secret("t0ken"), "-----BEGIN CERTIFICATE-----\n", "2026-01-02T00:00:00Z"
)
LINE = INVITATION.line()


@pytest.mark.parametrize("text", [LINE, f"syncline join '{LINE}'", f"  {LINE[:30]}\n{LINE[30:]}\n"])
def test_a_line_is_read_whole_within_its_command_and_broken(text: str) -> None:
    assert read_invitation(text) == INVITATION


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line to join with"),
        ("hello", "no line to join with"),
        (LINE[:-5], "damaged or cut off"),
        (LINE[:40] + "A" + LINE[41:], "damaged or cut off"),
        ("syncline1.!!!", "damaged or cut off"),
        (Invitation("ftp://x", Secret("t")).line(), "write https://HOST:PORT"),
        (Invitation("https://user:pw@x", Secret("t")).line(), "an address has no user"),
        (Invitation("https://x", Secret("")).line(), "no token"),
    ],
)
def test_another_text_is_refused_without_quoting_it(text: str, says: str) -> None:
    with pytest.raises(InvitationError, match=says) as refused:
        read_invitation(text)
    assert len(text) < 20 or text[10:30] not in str(refused.value)
    assert ":pw" not in str(refused.value)


def test_the_token_is_not_shown() -> None:
    assert "t0ken" not in repr(INVITATION)


def test_b1_a_cluster_is_proposed_without_acceptance() -> None:
    own = Own("c1", uid="u1", url="https://c1:6443", ca_pem="CA")
    made = proposed(own, {"agent.open-cluster-management.io/zone": "a", "other": "b"})
    assert made["spec"] == {
        "hubAcceptsClient": False,
        "managedClusterClientConfigs": [{"url": "https://c1:6443", "caBundle": "Q0E="}],
    }
    assert made["metadata"]["annotations"] == {"agent.open-cluster-management.io/zone": "a", CLUSTER_UID: "u1"}
    assert "managedClusterClientConfigs" not in proposed(Own("c1", url="http://c1:80"))["spec"]


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (TooManyRequests("Too many requests, please try again later."), True),
        (Unavailable("away"), True),
        (Forbidden("no"), False),
        (Unauthorized("who are you"), False),
        (NotFound("no hub"), False),
    ],
)
def test_a_join_goes_on_when_the_hub_has_too_much_to_do(error: ApiError, passes: bool) -> None:
    assert may_pass(error) is passes


@pytest.mark.parametrize(
    ("name", "valid"), [("c1", True), ("a.b", False), ("A", False), ("", False), ("x" * 64, False)]
)
def test_the_name_of_a_cluster_is_one_of_a_namespace(name: str, valid: bool) -> None:
    assert (name_problem(name) == "") is valid


def live(*, uid: str = "", claim: str = "", url: str = "", ca: str = "", joined: bool = False) -> Obj:
    notes = {CLUSTER_UID: uid} if uid else {}
    claims = [{"name": "id.k8s.io", "value": claim}] if claim else []
    configs = [{"url": url, "caBundle": ca}] if url else []
    conditions = [condition("ManagedClusterJoined", "True", "ManagedClusterJoined")] if joined else []
    return {
        "metadata": {"name": "c1", "annotations": notes},
        "spec": {"managedClusterClientConfigs": configs},
        "status": {"conditions": conditions, "clusterClaims": claims},
    }


OWN = Own("c1", uid="u1", claim="i1", url="https://a", ca_pem="CA")


@pytest.mark.parametrize(
    ("there", "own", "says"),
    [
        (live(), OWN, ""),
        (live(uid="u1", url="https://elsewhere", joined=True), OWN, ""),
        (live(uid="u2"), OWN, "another one (uid u2, this one has u1)"),
        (live(claim="i1", joined=True), OWN, ""),
        (live(claim="i2", joined=True), OWN, "another one (id.k8s.io i2, this one has i1)"),
        (live(url="https://a", ca="Q0E=", joined=True), OWN, ""),
        (live(url="https://a", ca="Q0I="), OWN, "another one (its API is at https://a, this one's at https://a)"),
        (live(url="https://b", ca="Q0E="), OWN, "its API is at https://b"),
        (live(url="https://b"), Own("c1"), ""),
        (live(joined=True), Own("c1"), "nothing shows that it is this one"),
        (live(uid="u2", joined=True), Own("c1", claim="i1"), "nothing shows that it is this one"),
    ],
)
def test_a_name_that_another_cluster_has_is_refused(there: Obj, own: Own, says: str) -> None:
    found = refusal(there, own)
    assert (found == "") if not says else (says in found)
    assert not found or "kubectl delete managedcluster c1" in found


def test_a_cluster_registered_beforehand_learns_where_its_api_is() -> None:
    made = with_config(live(url="https://b"), OWN)
    assert made is not None
    assert [one["url"] for one in made["spec"]["managedClusterClientConfigs"]] == ["https://b", "https://a"]
    assert with_config(live(url="https://a"), OWN) is None


def request(approved: bool = False, certificate: str = "") -> Obj:
    conditions = [{"type": "Approved", "status": "True"}] if approved else []
    return {"metadata": {"name": "c1-abc"}, "status": {"conditions": conditions, "certificate": certificate}}


@pytest.mark.parametrize(
    ("accepted", "csr", "what", "command"),
    [
        (
            False,
            request(),
            "the acceptance of cluster c1 and the approval of request c1-abc",
            "syncline cluster accept c1",
        ),
        (True, request(), "the approval of request c1-abc", "kubectl certificate approve c1-abc"),
        (True, request(True), "the certificate of request c1-abc", "kubectl describe csr c1-abc"),
        (False, request(True, "Q0E="), "the acceptance of cluster c1", "syncline cluster accept c1"),
        (False, None, "the acceptance of cluster c1", "syncline cluster accept c1"),
    ],
)
def test_b2_b3_both_gates_are_named_with_the_command_that_opens_them(
    accepted: bool, csr: Obj | None, what: str, command: str
) -> None:
    conditions = [condition(ACCEPTED, "True", "HubClusterAdminAccepted")] if accepted else []
    found = waiting_for({"metadata": {"name": "c1"}, "status": {"conditions": conditions}}, csr)
    assert found is not None
    assert (found.what, found.command) == (what, command)


def test_b3_a_cluster_with_acceptance_and_certificate_waits_for_nothing() -> None:
    conditions = [condition(ACCEPTED, "True", "HubClusterAdminAccepted")]
    assert (
        waiting_for({"metadata": {"name": "c1"}, "status": {"conditions": conditions}}, request(True, "Q0E=")) is None
    )

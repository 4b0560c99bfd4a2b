"""Which certificate requests the hub approves, and which clusters it accepts by itself."""

from __future__ import annotations

import pytest
from tests.fleet.hub.hubs import BOOTSTRAP, CLUSTER, CSRS, Hub, agent, csr, hub_of

from syncline.assembly.fleet.hub import HubSettings
from syncline.cluster.access.users import UserInfo
from syncline.fleet.hub.registration.approving import MAX_BYTES, MAX_RENEWALS, REASON, Requested, pem_of, verdict_of
from syncline.fleet.hub.registration.automatic import ACCEPTED_ON
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX
from syncline.kube.objects import Obj, annotations_of

TRUSTING = HubSettings(auto_approve_users=(BOOTSTRAP.name,))
BOTH = [PREFIX + "c2", CLUSTERS_GROUP]
REFUSED: dict[str, Obj] = {
    "the label names another cluster": csr("c1", label="c2"),
    "the common name is of another cluster": csr("c1", common_name=f"{PREFIX}c2:a1"),
    "the groups are those of another cluster": csr("c1", groups=BOTH),
    "the groups are those of two clusters": csr("c1", groups=[PREFIX + "c1", *BOTH]),
    "the common name is of another agent": csr("c1", common_name=f"{PREFIX}c1:a2"),
    "the common name has a third part": csr("c1", common_name=f"{PREFIX}c1:a1:b"),
    "the signer is of nodes": csr("c1", signerName="kubernetes.io/kube-apiserver-client-kubelet"),
}


@pytest.fixture
def hub() -> Hub:
    return hub_of()


def ask(hub: Hub, user: UserInfo, made: Obj) -> None:
    answer = hub.asks(user, "POST", CSRS, made)
    answer.or_raise()


def test_b9_a_renewal_of_an_accepted_agent_is_approved_with_upstreams_reason(hub: Hub) -> None:
    hub.join(accepted=True)
    ask(hub, agent("c1"), csr("c1"))
    assert hub.approval() == REASON
    assert "ManagedClusterCSRAutoApproved" in hub.event_reasons()


@pytest.mark.parametrize("why", REFUSED)
def test_b8_a_request_of_another_cluster_or_malformed_is_never_approved(hub: Hub, why: str) -> None:
    hub.join(accepted=True)
    hub.anyone_may_request()
    ask(hub, UserInfo(agent("c1").name, ("system:authenticated",)), REFUSED[why])
    assert hub.approval() is None


@pytest.mark.parametrize("why", REFUSED)
def test_b8_an_agent_may_not_even_write_a_request_for_others(hub: Hub, why: str) -> None:
    hub.join(accepted=True)
    answer = hub.asks(agent("c1"), "POST", CSRS, REFUSED[why])
    assert answer.status == 403
    assert hub.get(CSRS)["items"] == []


def test_b9_an_agent_may_request_certificates_for_addons_of_its_cluster(hub: Hub) -> None:
    hub.join(accepted=True)
    name = f"{PREFIX}cluster:c1:addon:wm"
    groups = [name, f"{PREFIX}addon:wm", "system:authenticated"]
    ask(hub, agent("c1"), csr("c1", common_name=f"{name}:agent:a1", groups=groups))
    signer = "example.com/addon"
    ask(hub, agent("c1"), csr("c1", "r2", common_name="anybody", groups=["its-own"], signerName=signer))
    other = csr("c1", "r3", common_name=f"{PREFIX}cluster:c2:addon:wm:agent:a1", groups=groups)
    assert hub.asks(agent("c1"), "POST", CSRS, other).status == 403
    assert hub.approval() is None, "requests of add-ons are for their own approvers"


def test_b9_a_renewal_waits_until_the_agent_may_renew(hub: Hub) -> None:
    hub.join(accepted=False)
    hub.anyone_may_request()
    ask(hub, agent("c1"), csr("c1"))
    assert hub.approval() is None
    hub.accept(True)
    assert hub.approval() == REASON


def test_b9_an_agent_with_too_many_requests_is_left_to_people(hub: Hub) -> None:
    hub.join(accepted=True)
    for number in range(MAX_RENEWALS + 2):
        ask(hub, agent("c1"), csr("c1", f"r{number}"))
    assert hub.approval(f"r{MAX_RENEWALS - 1}") == REASON
    assert hub.approval(f"r{MAX_RENEWALS}") is None
    ask(hub, agent("c1", "a2"), csr("c1", "other", common_name=f"{PREFIX}c1:a2"))
    assert hub.approval("other") == REASON, "the limit is of one agent"


def test_b9_a_request_that_is_none_or_beyond_the_size_limit_is_not_approved() -> None:
    assert not verdict_of(Requested(csr("c1", request="LS0tLS1CRUdJTiBYLS0tLS0K"), 1), ()).approved
    large = csr("c1")
    large["spec"]["request"] += "Cg==" * (MAX_BYTES // 4)
    assert pem_of(large) == ""
    assert not verdict_of(Requested(large, 1), ()).approved


def test_b7_requests_of_others_than_configured_users_are_left_to_people(hub: Hub) -> None:
    hub.join(accepted=True)
    ask(hub, BOOTSTRAP, csr("c1"))
    assert hub.approval() is None
    assert ACCEPTED_ON not in annotations_of(hub.get(f"{CLUSTER}/c1"))


def test_b7_a_cluster_of_a_configured_user_is_approved_and_accepted_once() -> None:
    hub = hub_of(TRUSTING)
    hub.join(accepted=False)
    assert hub.condition(ACCEPTED) is None, "no request yet"
    ask(hub, BOOTSTRAP, csr("c1"))
    assert hub.approval() == REASON
    assert hub.condition(ACCEPTED) == ("True", "HubClusterAdminAccepted")
    assert ACCEPTED_ON in annotations_of(hub.get(f"{CLUSTER}/c1"))
    hub.accept(False)
    ask(hub, BOOTSTRAP, csr("c1", "r2"))
    hub.time.advance(600)
    assert hub.condition(ACCEPTED) == ("False", "HubClusterAdminDenied")


def test_b7_a_cluster_that_joined_is_not_handed_to_who_knows_the_credentials_for_joining() -> None:
    hub = hub_of(TRUSTING)
    hub.join(accepted=False)
    ask(hub, BOOTSTRAP, csr("c1"))
    assert hub.approval() == REASON
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", "reason": "ManagedClusterJoined"}
    joined = [{"type": "ManagedClusterJoined", "status": "True", **since}]
    hub.send("PATCH", f"{CLUSTER}/c1/status", {"status": {"conditions": joined}})
    ask(hub, BOOTSTRAP, csr("c1", "r2", common_name=f"{PREFIX}c1:thief"))
    assert hub.approval("r2") is None


def test_b7_a_request_of_a_configured_user_for_another_cluster_accepts_nothing() -> None:
    hub = hub_of(HubSettings(auto_approve_users=("joe",)))
    hub.join(accepted=False)
    hub.anyone_may_request()
    joe = UserInfo("joe", ("system:authenticated",))
    ask(hub, joe, csr("c1", label="c2", common_name=f"{PREFIX}c2:a1"))
    assert hub.approval() is None
    assert hub.condition(ACCEPTED) is None
    ask(hub, joe, csr("c1", "r2"))
    assert hub.condition(ACCEPTED) == ("True", "HubClusterAdminAccepted")


def test_b7_a_cluster_with_the_name_of_a_namespace_of_others_is_not_accepted_automatically() -> None:
    hub = hub_of(TRUSTING)
    hub.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}})
    hub.join(accepted=False)
    ask(hub, BOOTSTRAP, csr("c1"))
    assert hub.condition(ACCEPTED) is None
    assert "ManagedClusterNotAccepted" in hub.event_reasons()

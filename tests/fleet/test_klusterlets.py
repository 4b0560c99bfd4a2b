"""Klusterlets: what one gets, what its conditions say, how it ends; and one over HTTP that joins the hub of its own
cluster by an import manifest."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.live import START_S, reached

from syncline.assembly.embedded.live import LiveCluster, kubeconfig_text, running_cluster, write_private
from syncline.assembly.fleet.hub import BOOTSTRAP_NAMESPACE, HubSettings
from syncline.assembly.fleet.klusterlet import klusterlet_role
from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT
from syncline.assembly.ports import HttpPort
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.base.secret import Secret
from syncline.cluster.access.pki import create_keys
from syncline.control.plan import Create, Delete, Patch, Plan, Retry, SetStatus
from syncline.fleet.conditions import find_condition
from syncline.fleet.spoke.klusterlet.model import (
    HUB_SECRET,
    AgentState,
    Connection,
    EndAgent,
    KeepCredentials,
    RunAgent,
    wanted_by,
)
from syncline.fleet.spoke.klusterlet.plan import FINALIZER, Observed, plan_klusterlet
from syncline.hosts.fleet.klusterlets import BootstrapError, KlusterletAgents, bootstrap_of, same_server, secret_data
from syncline.hosts.fleet.places import Joining
from syncline.kube.certificates import approved
from syncline.kube.client import Request, Transport
from syncline.kube.kinds.klusterlets import klusterlet_crd
from syncline.kube.kinds.manifestworks import APPLIED_FINALIZER
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

pytestmark = pytest.mark.filterwarnings("ignore:Attribute's length must be")
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ZONE = "agent.open-cluster-management.io/zone"
NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
SPACE, ADD_ONS = "open-cluster-management-agent", "open-cluster-management-agent-addon"
PATH = "/apis/operator.open-cluster-management.io/v1/klusterlets"
SERVER = "https://hub.example:6443"
BOOTSTRAP = Secret("kubeconfig")


def klusterlet(*, deleted: bool = False, finalizers: tuple[str, ...] = (FINALIZER,), **spec: Any) -> Obj:
    metadata: Obj = {"name": "klusterlet", "uid": "u1", "generation": 2, "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-07-01T12:00:00Z"
    body = {"clusterName": "c1", "namespace": SPACE, **spec}
    return {
        "apiVersion": "operator.open-cluster-management.io/v1",
        "kind": "Klusterlet",
        "metadata": metadata,
        "spec": body,
    }


def state(connection: Connection, *, credentials: bool = True, detail: str = "", **spec: Any) -> AgentState:
    wanted = wanted_by(klusterlet(**spec), BOOTSTRAP)
    return AgentState(wanted, connection, SERVER, detail, credentials, credentials)


def planned(live: Obj, now_runs: AgentState | None = None, **more: Any) -> Plan:
    fields: dict[str, Any] = {
        "bootstrap": BOOTSTRAP,
        "problem": "",
        "namespaces": frozenset({SPACE, ADD_ONS}),
        "state": now_runs,
    }
    return plan_klusterlet(Observed(live, **{**fields, **more}), NOW)


def reported(plan: Plan, kind: str) -> tuple[str, str, str]:
    (status,) = plan.status
    assert isinstance(status, SetStatus)
    found = find_condition(status.new["conditions"], kind)
    assert found is not None
    return found["status"], found["reason"], found["message"]


def test_a_klusterlet_gets_its_finalizer_before_anything_else() -> None:
    (patch,) = planned(klusterlet(finalizers=("other",))).actions
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["finalizers"] == ["other", FINALIZER]


def test_a_klusterlet_gets_its_namespaces_and_an_agent_of_its_uid() -> None:
    plan = planned(klusterlet(), namespaces=frozenset({ADD_ONS}))
    create, run = (action for step in plan.steps for action in step)
    assert isinstance(create, Create)
    assert create.target.name == SPACE
    assert isinstance(run, RunAgent)
    assert (run.wanted.cluster, run.wanted.uid, run.wanted.namespace) == ("c1", "u1", SPACE)


def test_an_agent_stays_while_its_klusterlet_asks_for_the_same() -> None:
    assert planned(klusterlet(), state(Connection.JOINING, credentials=False)).steps == ()
    (step,) = planned(klusterlet(), state(Connection.WORKING)).steps
    assert [type(one) for one in step] == [KeepCredentials]
    ((run,),) = planned(klusterlet(clusterName="c2"), state(Connection.WORKING)).steps
    assert isinstance(run, RunAgent)


def test_an_agent_outlives_its_bootstrap_secret() -> None:
    plan = planned(klusterlet(), state(Connection.WORKING), bootstrap=None, problem="gone")
    assert not any(isinstance(one, RunAgent | EndAgent) for one in plan.actions)
    assert reported(plan, "HubConnectionDegraded")[:2] == ("False", "HubConnectionFunctional")


@pytest.mark.parametrize(
    ("runs", "problem", "status", "reason", "says"),
    [
        (
            None,
            'secrets "bootstrap-hub-kubeconfig" not found',
            "True",
            "BootstrapSecretMissing,HubKubeConfigSecretMissing",
            f'Failed to get bootstrap secret "{SPACE}" "bootstrap-hub-kubeconfig": '
            f'secrets "bootstrap-hub-kubeconfig" not found\nFailed to get hub kubeconfig secret "{SPACE}" '
            '"hub-kubeconfig-secret": secrets "hub-kubeconfig-secret" not found',
        ),
        (
            state(Connection.JOINING, credentials=False),
            "",
            "True",
            "BootstrapSecretFunctional,HubKubeConfigSecretMissing",
            f"Bootstrap secret {SPACE}/bootstrap-hub-kubeconfig to apiserver {SERVER} is configured correctly\n"
            f'Failed to get hub kubeconfig secret "{SPACE}" "hub-kubeconfig-secret": '
            'secrets "hub-kubeconfig-secret" not found',
        ),
        (
            state(Connection.WORKING),
            "",
            "False",
            "HubConnectionFunctional",
            f"Hub kubeconfig secret {SPACE}/hub-kubeconfig-secret to apiserver {SERVER} is working",
        ),
        (
            state(Connection.REFUSED, detail="denied"),
            "",
            "True",
            "BootstrapSecretFunctional,HubKubeConfigUnauthorized",
            "denied",
        ),
        (state(Connection.AWAY, detail="no answer"), "", "True", "BootstrapSecretFunctional,HubKubeConfigError", ""),
        (
            state(Connection.FAILED, credentials=False, detail="the token is over"),
            "",
            "True",
            "BootstrapSecretError,HubKubeConfigSecretMissing",
            "the token is over",
        ),
    ],
)
def test_the_connection_to_the_hub_is_told_in_the_words_of_upstream(
    runs: AgentState | None, problem: str, status: str, reason: str, says: str
) -> None:
    plan = planned(klusterlet(), runs, problem=problem, bootstrap=None if problem else BOOTSTRAP)
    found = reported(plan, "HubConnectionDegraded")
    assert found[:2] == (status, reason)
    assert says in found[2]


@pytest.mark.parametrize(
    ("runs", "available", "registration", "work"),
    [
        (None, "False", "True", "True"),
        (state(Connection.JOINING, credentials=False), "False", "False", "False"),
        (state(Connection.WORKING), "True", "False", "False"),
    ],
)
def test_what_clusteradm_waits_for_is_there_once_the_agent_runs(
    runs: AgentState | None, available: str, registration: str, work: str
) -> None:
    plan = planned(klusterlet(), runs)
    assert reported(plan, "Available")[0] == available
    assert reported(plan, "RegistrationDesiredDegraded")[0] == registration
    assert reported(plan, "WorkDesiredDegraded")[0] == work
    assert reported(plan, "Applied")[:2] == ("True", "KlusterletApplied")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"deployOption": {"mode": "Hosted"}}, "spec.deployOption.mode is Hosted"),
        ({"registrationConfiguration": {"registrationDriver": {"authType": "grpc"}}}, "write csr"),
        (
            {"registrationConfiguration": {"bootstrapKubeConfigs": {"type": "LocalSecrets"}}},
            "write a Klusterlet with its own namespace for each of them",
        ),
    ],
)
def test_a_klusterlet_that_asks_for_what_we_lack_is_told_so_and_gets_nothing(spec: Obj, says: str) -> None:
    plan = planned(klusterlet(**spec))
    assert plan.steps == ()
    status, reason, message = reported(plan, "Applied")
    assert (status, reason) == ("False", "KlusterletApplyFailed")
    assert says in message


def test_unknown_feature_gates_are_named() -> None:
    gates = [{"feature": "ClusterClaim", "mode": "Enable"}, {"feature": "Nonsense", "mode": "Enable"}]
    found = reported(planned(klusterlet(registrationConfiguration={"featureGates": gates})), "ValidFeatureGates")
    assert found[:2] == ("False", "InvalidFeatureGatesExisting")
    assert "Registration: [Nonsense]" in found[2]


# -- the end --------------------------------------------------------------------------------------------------------


def applied(name: str, agent: str) -> Obj:
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {"name": name, "uid": name, "finalizers": [APPLIED_FINALIZER]},
        "spec": {"agentID": agent},
    }


def test_the_agent_ends_before_anything_is_deleted() -> None:
    ((end,),) = planned(klusterlet(deleted=True), state(Connection.WORKING)).steps
    assert isinstance(end, EndAgent)


def test_a_deleted_klusterlet_leaves_objects_but_no_credentials_and_no_namespaces() -> None:
    works = (applied("mine", "u1"), applied("other", "u2"))
    plan = planned(klusterlet(deleted=True), applied=works)
    end, *rest, last = (action for step in plan.steps for action in step)
    assert isinstance(end, EndAgent)
    assert [one.describe() for one in rest] == [
        "patch work.open-cluster-management.io/AppliedManifestWork//mine",
        f"delete /Secret/{SPACE}/{HUB_SECRET}",
        f"delete /Namespace//{SPACE}",
        f"delete /Namespace//{ADD_ONS}",
    ]
    assert isinstance(last, Patch)
    assert last.body["metadata"]["finalizers"] == []


def test_the_namespace_of_add_ons_stays_while_another_klusterlet_is_there() -> None:
    plan = planned(klusterlet(deleted=True), alone=False)
    deleted = [one.name for one in plan.actions if isinstance(one, Delete)]
    assert deleted == [HUB_SECRET, SPACE]


def test_nothing_ends_while_applied_works_cannot_be_read() -> None:
    plan = planned(klusterlet(deleted=True), unread="forbidden")
    assert plan.empty
    assert isinstance(plan.outcome, Retry)


# -- Secrets --------------------------------------------------------------------------------------------------------


def kubeconfig(user: Obj, **cluster: Any) -> Secret:
    return Secret(
        json.dumps(
            {
                "clusters": [{"name": "hub", "cluster": {"server": SERVER, **cluster}}],
                "contexts": [{"name": "x", "context": {"cluster": "hub", "user": "u"}}],
                "current-context": "x",
                "users": [{"name": "u", "user": user}],
            }
        )
    )


def test_a_bootstrap_kubeconfig_is_a_server_an_authority_and_a_token() -> None:
    authority = base64.b64encode(b"CA").decode()
    found, proxy = bootstrap_of(
        kubeconfig({"token": "t"}, **{"certificate-authority-data": authority, "proxy-url": "http://p:1"})
    )
    assert (found.server, found.token.reveal(), found.ca_pem, proxy) == (SERVER, "t", "CA", "http://p:1")


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        (kubeconfig({"exec": {"command": "/bin/sh"}}), "has no token"),
        (kubeconfig({"tokenFile": "/etc/shadow"}), "has no token"),
        (kubeconfig({"token": "t"}, server="file:///etc"), "cannot be used"),
        (kubeconfig({"token": "t"}, **{"insecure-skip-tls-verify": True}), "does not verify the hub"),
        (kubeconfig({"token": "t"}, **{"certificate-authority-data": "%"}), "is not text in base64"),
        (Secret("- 1"), "is not a map"),
        (Secret("{"), "is not YAML"),
        (Secret("current-context: x"), 'has no context "x"'),
    ],
)
def test_a_hostile_bootstrap_kubeconfig_runs_nothing_and_reads_nothing(secret: Secret, says: str) -> None:
    with pytest.raises(BootstrapError, match=says):
        bootstrap_of(secret)


def test_credentials_are_kept_as_the_agents_of_upstream_keep_them() -> None:
    pair = create_keys(NOW).authority.issue("a", now=NOW)
    access = ClusterAccess(SERVER, ca_pem="CA", certificate_pem=pair.certificate_pem, key_pem=pair.key_pem)
    data = {
        key: base64.b64decode(value).decode() for key, value in secret_data(access, Joining(SERVER, "c1", "u1")).items()
    }
    assert sorted(data) == ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]
    assert (data["cluster-name"], data["agent-name"], data["tls.crt"]) == ("c1", "u1", pair.certificate_pem)
    assert "client-certificate: tls.crt" in data["kubeconfig"]
    assert same_server({"data": secret_data(access, Joining(SERVER, "c1", "u1"))}, SERVER)
    assert not same_server({"data": {}}, SERVER)


# -- over HTTP ------------------------------------------------------------------------------------------------------


def import_manifest(cluster: LiveCluster, access: ClusterAccess) -> list[Obj]:
    """What ``clusteradm join`` applies, without the operator."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{BOOTSTRAP_NAMESPACE}/serviceaccounts/{BOOTSTRAP_ACCOUNT}/token"
    token = cluster.core.transport().send(Request("POST", path, body=body)).or_raise()["status"]["token"]
    authority = base64.b64encode(access.ca_pem.encode()).decode()
    text = json.loads(kubeconfig({"token": token}, **{"certificate-authority-data": authority}).reveal())
    text["clusters"][0]["cluster"]["server"] = cluster.url
    data = {"kubeconfig": base64.b64encode(json.dumps(text).encode()).decode()}
    metadata = {"name": "bootstrap-hub-kubeconfig", "namespace": SPACE}
    live = klusterlet(registrationConfiguration={"clusterAnnotations": {ZONE: "a", "foreign": "b"}})
    live["metadata"] = {"name": "klusterlet"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data},
        live,
    ]


async def tell(folder: Path) -> None:
    async with running_cluster(ClusterSettings(data=None)) as cluster:
        await cluster.start_hub(HubSettings())
        write_private(folder / "kubeconfig", kubeconfig_text(cluster))
        access = load_kubeconfig(folder / "kubeconfig")
        await cluster.run_role(klusterlet_role(KlusterletAgents(folder, access, SystemClock()), (klusterlet_crd(),)))
        hub, port = cluster.core.transport(), HttpPort(access)
        try:
            await imported(cluster, access, hub, port)
            await ended(hub, port, folder)
        finally:
            await port.close()


def connected(hub: Transport) -> bool:
    live = hub.send(Request("GET", f"{PATH}/klusterlet")).obj
    found = find_condition(dig(live, "status", "conditions") or (), "HubConnectionDegraded") or {}
    return found.get("reason") == "HubConnectionFunctional"


async def imported(cluster: LiveCluster, access: ClusterAccess, hub: Transport, port: HttpPort) -> None:
    places = ("/api/v1/namespaces", f"/api/v1/namespaces/{SPACE}/secrets", PATH)
    for path, obj in zip(places, import_manifest(cluster, access), strict=True):
        (await port.send(Request("POST", path, body=obj))).or_raise()
    (request,) = await reached(hub, REQUESTS, lambda: hub.send(Request("GET", REQUESTS)).or_raise()["items"])
    path = f"{REQUESTS}/{request['metadata']['name']}/approval"
    (await port.send(Request("PUT", path, body=approved(request, "Test", "a test")))).or_raise()
    merge = {"content-type": "application/merge-patch+json"}
    accept = {"spec": {"hubAcceptsClient": True}}
    (await port.send(Request("PATCH", f"{CLUSTERS}/c1", headers=merge, body=accept))).or_raise()
    await reached(hub, PATH, lambda: connected(hub))
    stored = hub.send(Request("GET", f"/api/v1/namespaces/{SPACE}/secrets/{HUB_SECRET}")).or_raise()
    assert base64.b64decode(stored["data"]["cluster-name"]) == b"c1"
    notes = annotations_of(hub.send(Request("GET", f"{CLUSTERS}/c1")).or_raise())
    assert (notes[ZONE], "foreign" in notes) == ("a", False)


async def ended(hub: Transport, port: HttpPort, folder: Path) -> None:
    (await port.send(Request("DELETE", f"{PATH}/klusterlet"))).or_raise()
    await reached(hub, PATH, lambda: hub.send(Request("GET", f"{PATH}/klusterlet")).status == 404)
    spaces = "/api/v1/namespaces"
    await reached(hub, spaces, lambda: hub.send(Request("GET", f"{spaces}/{SPACE}")).status == 404)
    assert not (folder / "klusterlets" / "klusterlet").exists()
    assert hub.send(Request("GET", f"{CLUSTERS}/c1")).ok, "the hub lets go by itself"


def test_an_import_manifest_brings_a_cluster_to_its_hub_and_its_deletion_away(tmp_path: Path) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(START_S):
            await tell(tmp_path)

    asyncio.run(bounded())

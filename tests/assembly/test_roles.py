"""Roles as values, and who ends what they run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.assembly.controllers import start
from tests.assembly.test_deploy import manifests
from tests.live import START_S, Served, reached, served_cluster

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.embedded.live import running_cluster
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.secret import Secret
from syncline.cli.main import cli
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

ACCOUNT = "/api/v1/namespaces/argocd/serviceaccounts/machine-config-controller"
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases"


def test_a_cluster_that_ends_leaves_the_controllers_of_another_one_in_the_same_process(tmp_path: Path) -> None:
    settings = ClusterSettings(tls=False, controllers=())

    async def both() -> list[str]:
        async with running_cluster(settings) as stays:
            await stays.start_gitops(GitOpsSettings(tmp_path / "stays"))
            await stays.start_machine_config("argocd")
            mine = asyncio.all_tasks()
            async with running_cluster(settings) as ends:
                await ends.start_gitops(GitOpsSettings(tmp_path / "ends"))
            return [task.get_name() for task in mine if task.done() or task.cancelling()]

    assert asyncio.run(both()) == []


def test_machine_config_controllers_run_against_any_api_with_their_rights_and_lease(tmp_path: Path) -> None:
    with served_cluster(tmp_path, ClusterSettings()) as served:
        access = load_kubeconfig(served.kubeconfig)
        admin = BlockingClient(access)
        run_in_place(ensure_objects(manifests("machineconfig.yaml")), admin)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = admin.send(Request("POST", f"{ACCOUNT}/token", body=request)).or_raise()["status"]["token"]
        account = replace(access, token=Secret(token), certificate_pem="", key_pem=None)
        leader = LeaderSettings("a", "argocd")
        running = start(served, tmp_path / "cache", leader, access=account, roles=("machineconfig",))
        try:
            _await_rendered(served)
            _await_holders(served, {"syncline-machineconfig-controller": "a", "syncline-machine-config": "syncline"})
        finally:
            running.end()
        assert _holders(admin)["syncline-machineconfig-controller"] == ""


def test_two_roles_of_one_process_hold_leases_of_their_own_and_give_them_back(tmp_path: Path) -> None:
    with served_cluster(tmp_path, ClusterSettings()) as served:
        admin = BlockingClient(load_kubeconfig(served.kubeconfig))
        leader = LeaderSettings("a", "argocd")
        running = start(served, tmp_path / "cache", leader, roles=("gitops", "machineconfig"))
        try:
            _await_rendered(served)
        finally:
            running.end()
        after = _holders(admin)
        names = ("syncline-application-controller", "syncline-machineconfig-controller")
        assert [after[name] for name in names] == ["", ""]


def _holders(admin: BlockingClient) -> dict[str, str]:
    leases = admin.send(Request("GET", LEASES)).or_raise()["items"]
    return {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in leases}


def _await_holders(served: Served, wanted: dict[str, str]) -> None:
    """The Lease that oc looks at may come after the pools are rendered."""
    transport = served.cluster.core.transport(judged=False)

    def look() -> bool:
        leases = transport.send(Request("GET", LEASES)).or_raise()["items"]
        return {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in leases} == wanted

    asyncio.run_coroutine_threadsafe(reached(transport, LEASES, look), served.loop).result(2 * START_S)


def _await_rendered(served: Served) -> None:
    transport = served.cluster.core.transport(judged=False)

    def look() -> bool:
        pools: list[Obj] = transport.send(Request("GET", POOLS)).or_raise()["items"]
        return len(pools) == 2 and all(dig(pool, "spec", "configuration", "name", default="") for pool in pools)

    asyncio.run_coroutine_threadsafe(reached(transport, POOLS, look), served.loop).result(2 * START_S)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--roles", "gitops,nosuch"], "--roles: nosuch: no such role; name some of gitops, machineconfig"),
        (["--roles", ""], "--roles: '': no such role; name some of gitops, machineconfig"),
        (["--roles", "machineconfig", "--webhook-listen", "127.0.0.1:0"], "only the role gitops takes webhooks"),
    ],
)
def test_a_role_that_is_none_is_named_with_those_that_are(options: list[str], said: str) -> None:
    asked = CliRunner().invoke(cli, ["controller", *options])
    assert asked.exit_code != 0
    assert said in asked.output + str(asked.exception)

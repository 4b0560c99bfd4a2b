"""A node's own way into the cluster: enough for its agent, and not a word about anything else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from tests.live import START_S, Served, served_cluster

from syncline.assembly.ports import HttpPort
from syncline.cli.main import main
from syncline.hosts.noderenewal import node_of_certificate, renew, renewal_due
from syncline.hosts.noderights import node_rights
from syncline.kube.client import PatchType, Request
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig
from syncline.kube.yaml.loading import load_all

GROUP = "machineconfiguration.openshift.io"
MCO = f"/apis/{GROUP}/v1"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
RUN = "import sys; from syncline.cli.main import main; sys.exit(main(sys.argv[1:]))"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
WORKER = "node-role.kubernetes.io/worker"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("rights")) as cluster:
        work = asyncio.run_coroutine_threadsafe(cluster.cluster.start_machine_config("argocd"), cluster.loop)
        work.result(START_S)
        yield cluster


@pytest.fixture(scope="module")
def own(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of the node "edge", and that node as its agent has made it, on a tree of its own."""
    folder = tmp_path_factory.mktemp("edge")
    path, tree = folder / "kubeconfig", folder / "tree"
    assert main(["node", "kubeconfig", "edge", "-o", str(path), "--kubeconfig", str(served.kubeconfig)]) == 0
    (tree / "etc").mkdir(parents=True)
    (tree / "etc/os-release").write_text('ID=debian\nPRETTY_NAME="Debian of a test"\n')
    words = ["node-agent", "--kubeconfig", str(path), "--node", "edge", "--root", str(tree), "--offline"]
    words += ["--register", "--label", f"{WORKER}=", "--once", "--patience", str(START_S)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, timeout=2 * START_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "edge has rendered-worker-" in done.stdout
    return path


def ask(
    kubeconfig: Path, verb: str, path: str, body: Obj | None = None, kind: PatchType | None = None
) -> tuple[int, Obj]:
    client = BlockingClient(load_kubeconfig(str(kubeconfig)))
    try:
        headers = {"content-type": kind.value} if kind is not None else {}
        answer = client.send(Request(verb, path, body=body, headers=headers))
        return answer.status, answer.obj
    finally:
        client.close()


def test_an_agent_registers_its_node_and_brings_it_to_rest_with_nothing_but_its_own_rights(
    served: Served, own: Path
) -> None:
    status, node = ask(served.kubeconfig, "GET", f"{NODES}/edge")
    assert status == 200
    assert node["metadata"]["annotations"][f"{GROUP}/state"] == "Done"
    assert node["spec"]["taints"][0] == {"key": "syncline.dev/no-kubelet", "effect": "NoSchedule"}
    assert node["status"]["nodeInfo"]["osImage"] == "Debian of a test"
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "NodeAgentReady")
    status, lease = ask(served.kubeconfig, "GET", f"{LEASES}/edge")
    assert (status, lease["spec"]["holderIdentity"]) == (200, "edge")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "why"),
    [
        ("GET", f"{MCO}/machineconfigs", None, 200, ""),
        ("GET", f"{MCO}/controllerconfigs", None, 200, ""),
        ("GET", "/api/v1/secrets", None, 403, "cannot list resource"),
        ("DELETE", f"{NODES}/edge", None, 403, "cannot delete resource"),
        ("PATCH", f"{NODES}/edge", {"metadata": {"annotations": {"a": "b"}}}, 200, ""),
        ("PATCH", f"{NODES}/other", {"metadata": {"annotations": {"a": "b"}}}, 422, "objects of its own name only"),
        ("PATCH", f"{NODES}/other/status", {"status": {"phase": "x"}}, 422, "objects of its own name only"),
        ("PATCH", f"{NODES}/edge", {"metadata": {"labels": {WORKER: None}}}, 422, "which pool it is in"),
        (
            "PATCH",
            f"{NODES}/edge",
            {"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}},
            422,
            "which pool it is in",
        ),
        ("PATCH", f"{NODES}/edge", {"metadata": {"labels": {"shelf": "3"}}}, 200, ""),
        ("PATCH", f"{NODES}/edge", {"spec": {"unschedulable": True}}, 422, "whether it is cordoned"),
        ("PATCH", f"{NODES}/edge", {"spec": {"taints": []}}, 422, "may not change its taints"),
        ("PATCH", f"{LEASES}/other", {"spec": {"holderIdentity": "edge"}}, 422, "objects of its own name only"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, str) else None,
)
def test_a_node_reads_configs_and_writes_what_is_its_own(
    served: Served, own: Path, verb: str, path: str, body: Obj | None, status: int, why: str
) -> None:
    ask(served.kubeconfig, "POST", NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}})
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}}
    ask(served.kubeconfig, "POST", LEASES, lease)
    got, answer = ask(own, verb, path, body, PatchType.MERGE if body is not None else None)
    assert got == status, answer
    assert why in str(answer.get("message", ""))


def test_who_is_no_node_is_not_bound_by_it(served: Served, own: Path) -> None:
    body: Obj = {"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}}
    assert ask(served.kubeconfig, "PATCH", f"{NODES}/edge", body, PatchType.MERGE)[0] == 200


def test_the_manifest_to_deploy_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_all((DEPLOY / "node-agent.yaml").read_text(), file="node-agent.yaml")
    assert not loaded.report.errors
    assert [document.value for document in loaded.documents if document.value is not None] == node_rights()
    assert main(["node", "kubeconfig", "--rights"]) == 0
    assert load_all(capsys.readouterr().out, file="-").documents[0].value["items"] == node_rights()


def test_the_kubeconfig_names_the_server_as_the_machine_reaches_it(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    words = ["--server", "https://10.0.2.2:6443", "--tls-server-name", "kubernetes", "--days", "1"]
    assert main(["node", "kubeconfig", "far", *words, "-o", str(path), "--kubeconfig", str(served.kubeconfig)]) == 0
    cluster = json.loads(path.read_text())["clusters"][0]["cluster"]
    assert (cluster["server"], cluster["tls-server-name"]) == ("https://10.0.2.2:6443", "kubernetes")
    assert path.stat().st_mode & 0o777 == 0o600
    access = load_kubeconfig(str(path))
    assert access.certificate_pem and access.ca_pem


def test_an_agent_renews_its_own_certificate_before_it_ends(served: Served, own: Path) -> None:
    """With no more rights than its own; the file changes as a whole, and the way in goes on with it."""
    access = load_kubeconfig(str(own))
    born = x509.load_pem_x509_certificate(access.certificate_pem.encode()).not_valid_before_utc
    assert not renewal_due(access.certificate_pem, born + timedelta(days=200))
    assert renewal_due(access.certificate_pem, born + timedelta(days=300))
    assert node_of_certificate(access.certificate_pem) == "edge"

    async def renewed() -> int:
        port = HttpPort(access)
        try:
            port.use(await renew(port, access, own, "edge"))
            return (await port.send(Request("GET", f"{NODES}/edge"))).status
        finally:
            await port.close()

    assert asyncio.run(renewed()) == 200
    again = load_kubeconfig(str(own))
    assert again.certificate_pem != access.certificate_pem
    assert own.stat().st_mode & 0o777 == 0o600
    assert ask(own, "GET", f"{NODES}/edge")[0] == 200


def test_a_certificate_of_somebody_else_is_nobodys_to_renew(served: Served) -> None:
    assert node_of_certificate(load_kubeconfig(str(served.kubeconfig)).certificate_pem) == ""

"""Commands inside a container over WebSocket, on a served cluster: the channel protocol, and kubectl."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.live import served_cluster
from tests.oc import Oc

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.cluster.serving.conversing import status_of_exit

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
LONGEST_S = 300
WAIT = f"--timeout={LONGEST_S}s"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": {"syncline.dev/run": "process"}},
    "spec": {
        "volumes": [{"name": "e", "emptyDir": {}}],
        "containers": [
            {
                "name": "c",
                "image": "none",
                "command": ["sleep", "600"],
                "env": [{"name": "A", "value": "of the container"}],
                "volumeMounts": [{"name": "e", "mountPath": "/work"}],
            }
        ],
    },
}
SIMULATED = {"metadata": {"name": "s"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}


class Cluster:
    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.kubeconfig, self.oc, self.server = kubeconfig, Oc(kubeconfig), cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        for name, field in (("crt", "client-certificate-data"), ("key", "client-key-data")):
            (folder / name).write_bytes(base64.b64decode(user[field]))
        self.tls.load_cert_chain(folder / "crt", folder / "key")

    def exec(self, *command: str, stdin: bytes | None = None, pod: str = "p", **options: str) -> dict[int, bytes]:
        """What came on each channel."""
        return asyncio.run(asyncio.wait_for(self._exec(command, stdin, pod, options), LONGEST_S))

    async def _exec(
        self, command: tuple[str, ...], stdin: bytes | None, pod: str, options: dict[str, str]
    ) -> dict[int, bytes]:
        query = [*(("command", each) for each in command), ("stdout", "true"), ("stderr", "true"), *options.items()]
        query += [("stdin", "true")] if stdin is not None else []
        url = f"{self.server}/api/v1/namespaces/default/pods/{pod}/exec"
        found: dict[int, bytes] = {}
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(url, params=query, ssl=self.tls, protocols=["v5.channel.k8s.io"]) as socket,
        ):
            assert socket.protocol == "v5.channel.k8s.io"
            if stdin is not None:
                await socket.send_bytes(b"\x00" + stdin)
                await socket.send_bytes(b"\xff\x00")
            async for message in socket:
                found[message.data[0]] = found.get(message.data[0], b"") + message.data[1:]
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED)
    folder = tmp_path_factory.mktemp("served")
    with served_cluster(folder, settings) as served:
        mine = Cluster(served.kubeconfig, folder)
        mine.oc("wait", "node/node-1", "--for=condition=Ready", WAIT)
        mine.oc("wait", "serviceaccount/default", "--for=create", WAIT)
        for pod in (POD, POD | SIMULATED):
            mine.oc("create", "-f", "-", stdin=json.dumps(pod))
        mine.oc("wait", "pod/p", "pod/s", "--for=condition=Ready", WAIT)
        yield mine


def status(found: dict[int, bytes]) -> Any:
    return json.loads(found[3])


def test_output_errors_and_success_come_on_their_channels(cluster: Cluster) -> None:
    found = cluster.exec("sh", "-c", 'echo "$A"; echo wrong >&2')
    assert (found[1], found[2], status(found)["status"]) == (b"of the container\n", b"wrong\n", "Success")


def test_an_exit_code_is_told(cluster: Cluster) -> None:
    found = cluster.exec("sh", "-c", "exit 7")
    assert status(found) == status_of_exit(7)
    assert status(found)["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


def test_a_command_reads_what_is_sent_until_its_end(cluster: Cluster) -> None:
    text = b"x" * 300_000
    assert cluster.exec("cat", stdin=text)[1] == text


def test_it_shares_the_container_and_sees_nothing_of_this_machine(cluster: Cluster) -> None:
    cluster.exec("sh", "-c", "echo kept > /work/file")
    assert cluster.exec("cat", "/work/file")[1] == b"kept\n"
    assert (
        cluster.exec("sh", "-c", "ls /root /home 2>/dev/null; touch /usr/x 2>/dev/null || echo walls")[1] == b"walls\n"
    )
    assert b"sleep 600" in cluster.exec("sh", "-c", "tr '\\0' ' ' < /proc/3/cmdline")[1]


def test_a_terminal_has_one_stream(cluster: Cluster) -> None:
    found = cluster.exec("sh", "-c", "test -t 1 && echo terminal; echo both >&2", stdin=b"", tty="true")
    assert (found[1], 2 in found) == (b"terminal\r\nboth\r\n", False)


def test_a_command_ends_when_its_client_leaves(cluster: Cluster) -> None:
    async def leave() -> None:
        url = f"{cluster.server}/api/v1/namespaces/default/pods/p/exec?command=sleep&command=4711&stdout=true"
        async with aiohttp.ClientSession() as client:
            socket = await client.ws_connect(url, ssl=cluster.tls, protocols=["v5.channel.k8s.io"])
            await socket.receive()
            await socket.close()

    asyncio.run(leave())
    count = "n=1; while [ $n -gt 0 ]; do n=$(cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 471[1]'); done"
    count += "; true"
    assert status(cluster.exec("timeout", str(LONGEST_S // 2), "sh", "-c", count))["status"] == "Success"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("pods/s/exec?command=ls&stdout=true", "simulated containers and those that have ended run nothing"),
        ("pods/p/exec?command=ls&stdout=true", "the request's Upgrade is SPDY/3.1"),
        ("pods/p/exec?stdout=true", "you must specify a command"),
        ("pods/p/exec?command=ls", "you must specify at least 1 of stdin, stdout, stderr"),
        ("pods/p/exec?command=ls&stdout=true&container=no", "container no is not valid for pod p"),
        ("pods/p/attach?stdout=true", "attach is not offered for pods/p"),
        ("pods/p/portforward?ports=80", "portforward is not offered for pods/p"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(cluster: Cluster, path: str, said: str) -> None:
    async def ask() -> tuple[int, str]:
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        url = f"{cluster.server}/api/v1/namespaces/default/{path}"
        async with aiohttp.ClientSession() as client, client.post(url, headers=headers, ssl=cluster.tls) as answer:
            return answer.status, (await answer.json(content_type=None))["message"]

    code, message = asyncio.run(ask())
    assert code == 400 and said in message


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl on this machine")
def test_kubectl_runs_commands_and_copies_files(cluster: Cluster, tmp_path: Path) -> None:
    def kubectl(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *argv]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LONGEST_S, check=False)

    done = kubectl("exec", "-i", "p", "--", "sh", "-c", "cat; exit 3", stdin="in")
    assert (done.stdout, done.returncode) == ("in", 3)
    (tmp_path / "sent").write_text("content")
    assert kubectl("cp", str(tmp_path / "sent"), "p:/work/sent").returncode == 0
    assert kubectl("cp", "p:/work/sent", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back").read_text() == "content"
    assert "simulated containers" in kubectl("exec", "s", "--", "ls").stderr


def test_a_client_that_does_not_read_leaves_nothing_behind(cluster: Cluster) -> None:
    async def leave() -> None:
        url = f"{cluster.server}/api/v1/namespaces/default/pods/p/exec?command=yes&stdout=true"
        async with aiohttp.ClientSession() as client:
            socket = await client.ws_connect(url, ssl=cluster.tls, protocols=["v5.channel.k8s.io"])
            await socket.receive()

    asyncio.run(leave())
    gone = "while cat /proc/[0-9]*/comm | grep -qx yes; do sleep 0.1; done"
    assert status(cluster.exec("timeout", str(LONGEST_S // 2), "sh", "-c", gone))["status"] == "Success"

"""``syncline up --machine-config --config-server-listen``: machines that join are answered over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from tests.live import START_S, Served, reached, served_cluster

from syncline.assembly.endpoints import configserver
from syncline.assembly.endpoints.configserver import config_server
from syncline.assembly.endpoints.listening import ListenError
from syncline.control.cache import Cache
from syncline.ignition.dataurl import decode_data_url
from syncline.kube.client import Request
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, dig
from syncline.machineconfig.names import CONTROLLER_CONFIG, MACHINE_CONFIG, POOL
from syncline.machineconfig.server.answering import Asked
from syncline.machineconfig.server.answering import Request as Ask

MCO = "/apis/machineconfiguration.openshift.io/v1"
IGNITION_0 = (
    "application/vnd.coreos.ignition+json; version=2.4.0, application/vnd.coreos.ignition+json; version=1; q=0.5"
)
IGNITION_2 = "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1"


@dataclass(frozen=True)
class Joining:
    """A machine that knows no more than the address and the authority."""

    served: Served
    context: ssl.SSLContext

    def ask(self, path: str, accept: str = "", method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
        where = urlsplit(self.served.cluster.config_server_url)
        assert where.scheme == "https"
        line = http.client.HTTPSConnection(where.hostname or "", where.port, context=self.context, timeout=START_S)
        try:
            line.request(method, path, headers={"Accept": accept, "User-Agent": "Ignition/0.35.0"})
            answer = line.getresponse()
            return answer, answer.read()
        finally:
            line.close()


@pytest.fixture(scope="module")
def joining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joining]:
    with served_cluster(tmp_path_factory.mktemp("served")) as served:
        asyncio.run_coroutine_threadsafe(_start(served), served.loop).result(2 * START_S)
        authority = base64.b64decode(served.access["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        yield Joining(served, ssl.create_default_context(cadata=authority))


async def _start(served: Served) -> None:
    """Until the pool worker has a proven config and the token is made."""
    transport = served.cluster.core.transport(judged=False)
    await served.cluster.start_machine_config("argocd", ("127.0.0.1", 0))

    async def until(collection: str, name: str, *path: str) -> None:
        def there() -> object:
            answer = transport.send(Request("GET", f"{collection}/{name}"))
            return answer.ok and dig(answer.obj, *path, default="")

        await reached(transport, collection, there)

    await until(f"{MCO}/machineconfigpools", "worker", "status", "configuration", "name")
    await until("/api/v1/namespaces/argocd/secrets", "node-bootstrapper-token", "data", "token")


def _files(config: Obj) -> dict[str, str]:
    return {each["path"]: decode_data_url(each["contents"]["source"]).decode() for each in config["storage"]["files"]}


def test_a_machine_gets_its_pools_config_and_a_credential_that_lets_it_ask_for_a_certificate(joining: Joining) -> None:
    answer, body = joining.ask("/config/worker", IGNITION_2)
    assert (answer.status, answer.getheader("Content-Type")) == (200, "application/json")
    assert answer.getheader("Content-Length") == str(len(body))
    config = json.loads(body)
    assert config["ignition"]["version"] == "3.4.0"
    files = _files(config)
    notes = json.loads(files["/etc/machine-config-daemon/node-annotations.json"])
    transport = joining.served.cluster.core.transport(judged=False)
    pool = transport.send(Request("GET", f"{MCO}/machineconfigpools/worker")).or_raise()
    assert notes["machineconfiguration.openshift.io/currentConfig"] == pool["spec"]["configuration"]["name"]

    access = json.loads(files["/etc/kubernetes/kubeconfig"])
    server = urlsplit(access["clusters"][0]["cluster"]["server"])
    line = http.client.HTTPSConnection(server.hostname or "", server.port, context=joining.context, timeout=START_S)
    bearer = {"Authorization": f"Bearer {access['users'][0]['user']['token']}"}
    found = {}
    for path in ("/apis/certificates.k8s.io/v1/certificatesigningrequests", "/api/v1/namespaces/argocd/secrets"):
        line.request("GET", path, headers=bearer)
        response = line.getresponse()
        found[path.rpartition("/")[2]] = response.status
        response.read()
    line.close()
    assert found == {"certificatesigningrequests": 200, "secrets": 403}


def test_an_old_ignition_gets_spec_2_2(joining: Joining) -> None:
    for accept in (IGNITION_0, ""):
        answer, body = joining.ask("/config/worker", accept)
        config = json.loads(body)
        assert (answer.status, config["ignition"]["version"]) == (200, "2.2.0")
        assert {file["filesystem"] for file in config["storage"]["files"]} == {"root"}


def test_sizes_are_told_without_the_config(joining: Joining) -> None:
    _, whole = joining.ask("/config/worker", IGNITION_2)
    answer, body = joining.ask("/config/worker", IGNITION_2, "HEAD")
    assert (answer.status, answer.getheader("Content-Length"), body) == (200, str(len(whole)), b"")


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/config/nobody", IGNITION_2, 500),
        ("GET", "/config/worker", "application/vnd.coreos.ignition+json;version=1.0.0", 400),
        ("GET", "/", IGNITION_2, 404),
        ("GET", "/configs/worker", IGNITION_2, 404),
        ("POST", "/config/worker", IGNITION_2, 405),
        ("PUT", "/healthz", "", 405),
        ("GET", "/healthz", "", 200),
    ],
)
def test_what_is_not_served_is_refused_without_a_word(
    joining: Joining, method: str, path: str, accept: str, status: int
) -> None:
    answer, body = joining.ask(path, accept, method)
    assert (answer.status, body, answer.getheader("Content-Length")) == (status, b"", "0")
    assert answer.getheader("Content-Type") is None


def test_other_spellings_of_a_path_are_sent_to_the_short_one(joining: Joining) -> None:
    answer, _ = joining.ask("/config//x/../worker?y=z", IGNITION_2)
    assert (answer.status, answer.getheader("Location")) == (307, "/config/worker?y=z")


def test_why_a_machine_got_nothing_is_logged_once(joining: Joining, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "syncline.assembly"):
        for _ in range(3):
            assert joining.ask("/config/stranger", IGNITION_2)[0].status == 500
    told = [each.getMessage() for each in caplog.records]
    assert [each for each in told if each.startswith("config server:")] == [
        "config server: 500: config of pool 'stranger' in version 3.4.0: MachineConfigPool 'stranger' does not exist"
    ]


def test_without_tls_credentials_stay_on_the_loopback() -> None:
    async def story() -> None:
        async with config_server("0.0.0.0", 0, Cache(Mapper()), lambda _: "", None):
            pass

    with pytest.raises(ListenError, match=r"no TLS; listen on 127\.0\.0\.1"):
        asyncio.run(story())


RENDERED: Obj = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "rendered-worker-a", "uid": "u1", "resourceVersion": "7"},
    "spec": {"config": {"ignition": {"version": "3.5.0"}}},
}
AUTHORITY: Obj = {
    "kind": "ControllerConfig",
    "metadata": {"name": "machine-config-controller", "uid": "u2", "resourceVersion": "1"},
    "spec": {"kubeAPIServerServingCAData": "YQ=="},
}
WORKERS: Obj = {
    "kind": "MachineConfigPool",
    "metadata": {"name": "worker"},
    "status": {"configuration": {"name": "rendered-worker-a"}},
}


def _with_motd(text: str, version: str, authority: Obj = AUTHORITY) -> Cache:
    cache = Cache(Mapper())
    file = {"path": "/etc/motd", "contents": {"source": f"data:,{text}"}}
    config = {"ignition": {"version": "3.5.0"}, "storage": {"files": [file]}}
    metadata = RENDERED["metadata"] | {"resourceVersion": version}
    cache.put(MACHINE_CONFIG, RENDERED | {"metadata": metadata, "spec": {"config": config}})
    cache.put(CONTROLLER_CONFIG, authority)
    cache.put(POOL, WORKERS)
    return cache


async def _asked(cache: Cache, makes: configserver._Makes, kubeconfig: str = "secret", version: str = "3.4.0") -> Obj:
    accept = f"application/vnd.coreos.ignition+json;version={version}"
    found = configserver._looked_up(Ask("GET", "/config/worker", accept), cache, lambda _: kubeconfig)
    assert isinstance(found, Asked)
    return _files(json.loads((await makes.answer(found)).body))


def test_a_config_is_made_once_for_all_that_it_depends_on() -> None:
    """Objects of one version are one object, so another text under the same version shows who was answered from what
    was kept."""

    async def story() -> None:
        makes = configserver._Makes()
        first = await _asked(_with_motd("first", "7"), makes)
        assert first["/etc/motd"] == "first"
        assert await _asked(_with_motd("second", "7"), makes) == first
        assert (await _asked(_with_motd("second", "8"), makes))["/etc/motd"] == "second"
        renewed = await _asked(_with_motd("second", "7"), makes, kubeconfig="renewed")
        assert (renewed["/etc/motd"], renewed["/etc/kubernetes/kubeconfig"]) == ("second", "renewed")
        other = AUTHORITY | {"metadata": AUTHORITY["metadata"] | {"resourceVersion": "2"}}
        assert (await _asked(_with_motd("third", "7", other), makes))["/etc/motd"] == "third"
        assert (await _asked(_with_motd("fourth", "7"), makes, version="3.1.0"))["/etc/motd"] == "fourth"
        assert await _asked(_with_motd("fifth", "7"), makes) == first

    asyncio.run(story())


def test_no_more_configs_are_kept_than_there_is_room_for() -> None:
    async def story() -> None:
        makes = configserver._Makes()
        for version in range(configserver.MAX_KEPT + 1):
            await _asked(_with_motd(f"old-{version}", str(version)), makes)
        assert (await _asked(_with_motd("new", "0"), makes))["/etc/motd"] == "new", "the oldest went"
        assert (await _asked(_with_motd("new", "5"), makes))["/etc/motd"] == "old-5"

    asyncio.run(story())

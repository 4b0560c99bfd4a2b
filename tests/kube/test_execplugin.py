"""Credentials from programs: real scripts, real servers, and each way in which they fail."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.serving import JANE, KEYS, TOKEN, World, served

from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.kube.client import Request
from syncline.kube.errors import Unauthorized
from syncline.kube.transport import execplugin, http
from syncline.kube.transport.execplugin import Credential, ExecPlugin, PluginError, Plugins
from syncline.kube.transport.http import BlockingClient, HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess

V1, BETA = execplugin.API_VERSIONS
PROGRAM = (
    f"#!{sys.executable}\n"
    + """
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
seen = {"told": told, "args": sys.argv[1:], "mine": os.environ.get("MINE"), "tty": sys.stdin.isatty()}
with (here / "runs").open("a") as runs:
    runs.write(json.dumps(seen) + "\\n")
exec((here / "answer.py").read_text())
"""
)


class Script:
    """A plugin in a folder; ``answer`` is the Python that it runs, ``runs`` what it was told each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plugin"
        self.path.write_text(PROGRAM)
        self.path.chmod(0o755)

    def answers(self, **status: Any) -> None:
        self.does(f"print({json.dumps(json.dumps({'kind': 'ExecCredential', 'apiVersion': V1, 'status': status}))})")

    def does(self, code: str) -> None:
        (self.folder / "answer.py").write_text(code)

    @property
    def runs(self) -> list[dict[str, Any]]:
        file = self.folder / "runs"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def plugin(self, **more: Any) -> ExecPlugin:
        return ExecPlugin(str(self.path), **{"interactive_mode": "Never", "label": "user u", **more})


@pytest.fixture
def script(tmp_path: Path) -> Script:
    made = Script(tmp_path)
    made.answers(token="t")
    return made


def test_a_program_is_told_what_it_needs_and_asked_once_until_it_expires(script: Script) -> None:
    script.answers(token="t", expirationTimestamp="2026-01-01T00:10:00Z")
    clock = VirtualClock()
    plugins = Plugins(clock)
    plugin = script.plugin(args=("--a", "b"), env=(("MINE", "yes"),), cluster='{"server": "https://x"}')
    first = plugins.get(plugin)
    assert first.token == Secret("t") and plugins.get(plugin) is first
    clock.advance(600)
    assert plugins.known(plugin) is first
    clock.advance(1)
    assert plugins.known(plugin) is None
    assert plugins.get(plugin) is not first
    assert script.runs[0] == {
        "told": {
            "kind": "ExecCredential",
            "apiVersion": V1,
            "spec": {"interactive": False, "cluster": {"server": "https://x"}},
        },
        "args": ["--a", "b"],
        "mine": "yes",
        "tty": False,
    }
    assert len(script.runs) == 2


def test_what_does_not_expire_is_kept_until_the_server_refuses_it(script: Script) -> None:
    plugins, plugin = Plugins(), script.plugin()
    first = plugins.get(plugin)
    assert plugins.get(plugin) is first and len(script.runs) == 1
    second = plugins.renew(plugin, first)
    assert second is not first and len(script.runs) == 2
    assert plugins.renew(plugin, first) is second and len(script.runs) == 2, "somebody else had it renewed"


def test_ten_requests_at_once_run_it_once(script: Script) -> None:
    plugins, plugin = Plugins(), script.plugin()
    threads = [threading.Thread(target=plugins.get, args=(plugin,)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(script.runs) == 1


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [("Never", True, False), ("IfAvailable", False, False), ("IfAvailable", True, True)],
)
def test_it_may_ask_a_person_where_there_is_one(script: Script, mode: str, terminal: bool, interactive: bool) -> None:
    Plugins(is_terminal=lambda: terminal).get(script.plugin(interactive_mode=mode))
    assert script.runs[0]["told"]["spec"] == {"interactive": interactive}


def test_one_that_must_ask_a_person_is_not_run_without_one(script: Script) -> None:
    with pytest.raises(PluginError, match="asks a person, and standard input is no terminal"):
        Plugins(is_terminal=lambda: False).get(script.plugin(interactive_mode="Always"))
    assert script.runs == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit(3)", "failed with exit code 3"),
        ("print('hidden')", "is no JSON"),
        ("print('[1]')", "is no ExecCredential"),
        ("print('{}')", "is no ExecCredential"),
        (
            'print(json.dumps({"kind": "ExecCredential", "apiVersion": "x/v9"}))',
            f"use API version {V1}, it returned x/v9",
        ),
        ('print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"]}))', "didn't return a status"),
        (
            'print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"], "status": {}}))',
            "didn't return a token or cert/key pair",
        ),
        (
            'print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"], '
            '"status": {"clientKeyData": "hidden"}}))',
            "only certificate or key, not both",
        ),
        (
            'print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"], '
            '"status": {"token": "hidden", "expirationTimestamp": "soon"}}))',
            "expirationTimestamp that is no time",
        ),
        ("print('hidden' * 1_000_000)", "wrote more than 1048576 bytes"),
    ],
)
def test_what_a_program_does_wrong_is_said_with_its_user_and_the_hint(script: Script, code: str, message: str) -> None:
    script.does(code)
    with pytest.raises(PluginError, match=message) as caught:
        Plugins().get(script.plugin(install_hint="brew install it"))
    assert str(caught.value).startswith("user u: getting credentials: exec: ")
    assert str(caught.value).endswith("\n\nbrew install it") and "hidden" not in str(caught.value)


def test_a_program_that_is_not_there_is_said_with_the_hint(tmp_path: Path) -> None:
    plugin = ExecPlugin("no-such-program", interactive_mode="Never", install_hint="install it", label="user u")
    with pytest.raises(PluginError, match=r"user u: .*executable no-such-program not found\n\ninstall it"):
        Plugins().get(plugin)
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(PluginError, match="cannot be run: Exec format error"):
        Plugins().get(replace(plugin, command=str(tmp_path / "text")))


def test_a_program_that_never_answers_is_stopped_with_its_children(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "TIME_LIMIT_S", 0.3)
    script.does("import subprocess; subprocess.run(['sleep', '600'])")
    with pytest.raises(PluginError, match="did not answer within 0 seconds"):
        Plugins().get(script.plugin())


# -- with clients -------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PLUGINS", Plugins())


def access_of(world: World, script: Script) -> ClusterAccess:
    return ClusterAccess(world.url, KEYS.ca_pem, exec_plugin=script.plugin())


async def both(access: ClusterAccess, path: str = "/api/v1/pods") -> list[tuple[int, Any]]:
    """The same request by both clients, and a second one on the same connections."""
    client, blocking = HttpClient(access), BlockingClient(access)
    found = []
    for _ in range(2):
        answer = await client.send(Request("GET", path))
        found.append((answer.status, answer.obj))
        answer = await asyncio.to_thread(blocking.send, Request("GET", path))
        found.append((answer.status, answer.obj))
    await client.close()
    blocking.close()
    return found


def test_clients_show_the_token_that_the_program_gave(script: Script) -> None:
    async def scene() -> None:
        async with served() as world:
            script.answers(token=JANE)
            found = await both(access_of(world, script))
            assert [(status, obj["user"]) for status, obj in found] == [(200, "jane")] * 4
            assert len(script.runs) == 1

    asyncio.run(scene())


def test_clients_show_the_certificate_that_the_program_gave(script: Script) -> None:
    async def scene() -> None:
        async with served() as world:
            script.answers(clientCertificateData=KEYS.admin.certificate_pem, clientKeyData=KEYS.admin.key_pem.reveal())
            found = await both(access_of(world, script))
            assert [(status, obj["user"]) for status, obj in found] == [(200, "kubernetes-admin")] * 4

    asyncio.run(scene())


@pytest.mark.parametrize("kind", ["live", "blocking"])
def test_what_the_server_refuses_is_renewed_once(script: Script, kind: str) -> None:
    async def scene() -> None:
        async with served() as world:
            script.answers(token="stale")
            access = access_of(world, script)
            http.PLUGINS.get(script.plugin())
            script.answers(token=TOKEN)
            if kind == "live":
                client = HttpClient(access)
                answer = await client.send(Request("GET", "/api/v1/pods"))
                await client.close()
            else:
                blocking = BlockingClient(access)
                answer = await asyncio.to_thread(blocking.send, Request("GET", "/api/v1/pods"))
            assert answer.obj["user"] == "kubernetes-admin" and len(script.runs) == 2
            script.answers(token="wrong")
            http.PLUGINS = Plugins()
            client = HttpClient(access)
            assert (await client.send(Request("GET", "/api/v1/pods"))).status == 401
            assert len(script.runs) == 4, "asked, and asked once more"
            await client.close()

    asyncio.run(scene())


def test_another_certificate_takes_another_connection(script: Script) -> None:
    async def scene() -> None:
        async with served() as world:
            certificate, key = KEYS.admin.certificate_pem, KEYS.admin.key_pem.reveal()
            script.answers(clientCertificateData=certificate, clientKeyData=key)
            client = HttpClient(access_of(world, script))
            assert (await client.send(Request("GET", "/api/v1/pods"))).status == 200
            other = KEYS.authority.issue("jo", now=world.server._clock.now())
            script.answers(clientCertificateData=other.certificate_pem, clientKeyData=other.key_pem.reveal())
            plugin = script.plugin()
            held = http.PLUGINS.known(plugin)
            assert isinstance(held, Credential)
            http.PLUGINS.renew(plugin, held)
            assert (await client.send(Request("GET", "/api/v1/pods"))).obj["user"] == "jo"
            await client.close()

    asyncio.run(scene())


def test_a_program_that_fails_is_told_as_the_answer(script: Script) -> None:
    async def scene() -> None:
        async with served() as world:
            script.does("sys.exit(1)")
            access = access_of(world, script)
            found = await both(access)
            assert {status for status, _ in found} == {401}
            assert all("getting credentials: exec: " in obj["message"] for _, obj in found)
            assert world.api.asked == []
            client = HttpClient(access)
            with pytest.raises(Unauthorized, match="getting credentials"):
                async for _ in client.watch(Request("GET", "/api/v1/pods", {"watch": "1"})):
                    raise AssertionError("nothing was to come")
            with pytest.raises(Unauthorized, match="getting credentials"):
                await asyncio.to_thread(lambda: list(BlockingClient(access).watch(Request("GET", "/x"))))

    asyncio.run(scene())


def test_a_proxy_carries_requests_of_both_clients(script: Script) -> None:
    """A proxy that opens tunnels, and notes to where and with which password."""
    asked: list[str] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        host, _, port = head.split()[1].partition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer), return_exceptions=True)

    async def scene() -> None:
        async with served() as world:
            proxy = await asyncio.start_server(carry, "127.0.0.1", 0)
            port = proxy.sockets[0].getsockname()[1]
            access = replace(world.access, proxy_url=f"http://me:p%40ss@127.0.0.1:{port}")
            found = await both(access)
            assert [status for status, _ in found] == [200] * 4
            proxy.close()
            assert len(asked) == 2
            for head in asked:
                assert head.startswith(f"CONNECT 127.0.0.1:{world.server.port} ")
                assert "Basic bWU6cEBzcw==" in head

    asyncio.run(scene())


def test_plugins_that_hang_keep_no_place_of_other_work_of_the_process(tmp_path: Path) -> None:
    """More clusters than the event loop's own pool has threads wait for their plugins, which read a pipe for ever."""

    count = 2 + min(32, (os.cpu_count() or 1) + 4)

    async def story() -> str:
        clients = []
        for number in range(count):
            folder = tmp_path / str(number)
            folder.mkdir()
            script = Script(folder)
            os.mkfifo(folder / "pipe")
            script.does("(here / 'pipe').read_text()")
            clients.append(HttpClient(ClusterAccess("https://127.0.0.1:1", exec_plugin=script.plugin())))
        waiting = [asyncio.ensure_future(one.send(Request("GET", "/", {}, {}))) for one in clients]
        try:
            await asyncio.sleep(0)
            return await asyncio.to_thread(lambda: "other work")
        finally:
            assert not any(one.done() for one in waiting)
            for number in range(count):
                with contextlib.suppress(OSError):
                    os.close(os.open(tmp_path / str(number) / "pipe", os.O_WRONLY | os.O_NONBLOCK))
                (tmp_path / str(number) / "pipe").unlink()
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for client in clients:
                await client.close()

    assert asyncio.run(story()) == "other work"

"""How commands reach a cluster, also through a proxy: both clients answer in the same way."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.main import main
from syncline.kube.client import Request

EVENTS = [{"type": "ADDED", "object": {"kind": "A"}}, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}]


class Answers(BaseHTTPRequestHandler):
    """Any path is answered, whether it is asked for directly or as a proxy is asked."""

    def do_GET(self) -> None:
        lines = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS)
        body = lines if "watch=true" in self.path else json.dumps({"asked": self.path}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["direct", "proxied"])
def link(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[Connection]:
    where = {"server": address} if request.param == "direct" else {"server": "http://inside:1", "proxy-url": address}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "namespace": "n"}}],
        "clusters": [{"name": "k", "cluster": where}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    with Connection(str(file)) as made:
        yield made


def test_requests_arrive_with_and_without_a_proxy(link: Connection) -> None:
    assert link.ask(Request("GET", "/version"))["asked"].endswith("/version")
    assert link.namespace == "n"


def test_a_watch_yields_events_and_an_error_event_ends_the_command(link: Connection) -> None:
    events = link.watch(Request("GET", "/things", {"watch": "true"}))
    assert next(events) == EVENTS[0]
    with pytest.raises(CommandFailed, match="too old"):
        next(events)


def test_lines_are_read_on_a_connection_of_their_own(link: Connection) -> None:
    assert [json.loads(line)["type"] for line in link.lines(Request("GET", "/log", {"watch": "true"}))] == [
        "ADDED",
        "ERROR",
    ]


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    with Connection(str(file)) as link, pytest.raises(CommandFailed) as failed:
        link.ask(Request("GET", "/version"))
    assert "127.0.0.1:1" in str(failed.value) and "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "words",
    [
        ("pool", "list"),
        ("pool", "timeline", "worker"),
        ("node", "list"),
        ("mc", "list"),
        ("mc", "impact"),
        ("explain", "pool/worker"),
        ("app", "list"),
    ],
    ids=" ".join,
)
def test_every_command_says_so_in_one_line_when_the_server_is_not_there(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    assert main([*words, "--kubeconfig", str(tmp_path / "kubeconfig")]) == (20 if words[0] == "app" else 1)
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n"), told.err.count("127.0.0.1:1")) == ("", 1, 1)
    assert told.err.startswith("error: the server http://127.0.0.1:1 cannot be reached: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_output_that_cannot_be_written_is_one_line_and_a_failure() -> None:
    command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())", "version"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")

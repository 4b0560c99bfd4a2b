"""The official JavaScript client, unmodified, in Node: typed kinds, patches, apply, an informer, watches, errors."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served

FOLDER = Path(__file__).with_name("javascript")
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="Node.js is not installed"),
    pytest.mark.skipif(
        not (FOLDER / "node_modules").is_dir(), reason="the JavaScript client is not installed: npm ci in its folder"
    ),
]
NAMESPACE = "javascript-client"
LIMIT_S = 300


@pytest.fixture(scope="module")
def observed(served: Served) -> Any:
    """What the program says it saw."""
    assert NODE is not None
    from syncline.cli.access.connection import Connection
    from syncline.kube.client import Request

    with Connection(str(served.kubeconfig)) as link:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        link.ask(Request("POST", "/api/v1/namespaces", body=body))
    command = [NODE, "client.mjs", str(served.kubeconfig), NAMESPACE]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_objects_are_created_replaced_patched_and_applied(observed: Any) -> None:
    assert observed["version"] == "1"
    assert observed["created"] == ["one", {"a": "1"}, True]
    assert observed["replaced"] == {"a": "1", "b": "2"} and observed["patched"] == {"b": "2"}
    assert observed["applied"] == [{"c": "3"}, [["js-test", "Apply"]]]


def test_refusals_are_statuses_that_the_client_reads(observed: Any) -> None:
    assert observed["conflict"] == [409, "Conflict"]
    assert observed["invalid"] == [422, "metadata.name"]


def test_lists_pages_and_an_informer_see_what_is_there(observed: Any) -> None:
    assert observed["listed"] == ["one", "two"] and observed["page"] is True
    assert observed["events"] == ["add one", "add three", "add two", "delete three"]
    assert observed["left"] == 0


def test_a_deployment_comes_up_is_scaled_and_its_log_is_read(observed: Any) -> None:
    assert (observed["ready"], observed["scaled"], observed["log"]) == ("web", 1, "string")

"""One served cluster over HTTPS with three nodes for all tests of clients, and a namespace for each test.

Commands of Jobs run for real where this machine lets them run in a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.kubectl import Kubectl
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.processes.launching import sandbox_problem


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    commands = RunCommands.OFF if sandbox_problem() else RunCommands.SANDBOXED
    settings = ClusterSettings(nodes=3, run_commands=commands)
    with served_cluster(tmp_path_factory.mktemp("clients"), settings) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kubectl's discovery cache is shared: it is filled once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(served: Served, home: Path, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl in a namespace of the test's own."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:50].strip("-")
    found = Kubectl(served.kubeconfig, home, url=served.url)
    found("create namespace", name)
    return found.within(name)

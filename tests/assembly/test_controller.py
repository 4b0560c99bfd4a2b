"""The GitOps controllers as a process of their own: nothing but HTTP between them and a served cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.assembly.controllers import APPS, MAP, MAPS, Cluster, start
from tests.live import served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.controller import ControllerSettings, StartError, serve_controller
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.base.secret import Secret
from syncline.control.leader import LEASES, LeaderSettings
from syncline.kube import client
from syncline.kube.objects import dig
from syncline.kube.transport.http import HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("served"), ClusterSettings()) as served:
        yield Cluster(served)


def test_an_application_syncs_through_http_alone(cluster: Cluster, upstream: Upstream, tmp_path: Path) -> None:
    sha = upstream.commit({"one/map.yaml": MAP.format(name="one")})
    running = start(cluster.served, tmp_path / "cache")
    try:
        cluster.application("one", str(upstream.path), "one")
        assert dig(cluster.synced("one"), "status", "sync", "revision") == sha
        assert cluster.ask(client.get(MAPS, "demo", "one"))["data"] == {"a": "1"}
    finally:
        running.end()


def test_the_next_replica_takes_over_what_the_first_hands_over(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"two/map.yaml": MAP.format(name="two")})
    # So long that no busy machine makes one lose what it has to hand over.
    patient = LeaderSettings("a", "argocd", lease_s=600, renew_deadline_s=300.0, retry_s=0.2)
    first = start(cluster.served, tmp_path / "a", patient)
    cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "a")
    second = start(cluster.served, tmp_path / "b", replace(patient, identity="b"))
    try:
        cluster.application("two", str(upstream.path), "two")
        cluster.synced("two")
        assert second.replica.gate.open == frozenset()
        first.end()
        cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "b")
        changed = upstream.commit({"two/map.yaml": MAP.format(name="two") + "# changed\n"})
        cluster.refresh("two")
        cluster.watch_until(
            APPS, "argocd", "two", lambda app: dig(app, "status", "sync", "revision", default="") == changed
        )
    finally:
        second.end()
    lease = cluster.ask(client.get(LEASES, "argocd", first_name()))
    assert lease["spec"]["holderIdentity"] == ""


def test_a_replica_that_is_cut_off_loses_its_share_and_comes_back_as_a_candidate(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"three/map.yaml": MAP.format(name="three")})
    short = LeaderSettings("a", "argocd", lease_s=8, renew_deadline_s=2.0, retry_s=0.2)
    first = start(cluster.served, tmp_path / "a", short)
    cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "a")
    second = start(cluster.served, tmp_path / "b", replace(short, identity="b"))
    try:
        requests = first.replica.port._requests
        cut = HttpClient(ClusterAccess(server="http://127.0.0.1:1"))
        first.replica.port._requests = cut
        cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "b")
        assert first.replica.gate.open == frozenset()
        cluster.application("three", str(upstream.path), "three")
        cluster.synced("three")
        first.replica.port._requests = requests
        second.end()
        cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "a")
    finally:
        second.end()
        first.end()


def test_the_command_hands_over_when_it_is_told_to_stop(cluster: Cluster, tmp_path: Path) -> None:
    options = ["--kubeconfig", str(cluster.served.kubeconfig), "--identity", "told", "--cache", str(tmp_path)]
    command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())", "controller"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "told")
    process.terminate()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "handed over"
    assert cluster.ask(client.get(LEASES, "argocd", first_name()))["spec"]["holderIdentity"] == ""


def first_name() -> str:
    return LeaderSettings("x", "argocd").name


def test_a_cluster_that_refuses_is_named_with_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    access = load_kubeconfig(cluster.served.kubeconfig)
    stranger = ClusterAccess(server=access.server, ca_pem=access.ca_pem, token=Secret("not-a-token"))
    settings = ControllerSettings(GitOpsSettings(tmp_path))

    async def serve() -> None:
        await serve_controller(stranger, settings, SystemClock(), asyncio.Event())

    with pytest.raises(StartError, match=r"cannot be installed: .*; apply deploy/controller.yaml"):
        asyncio.run(serve())

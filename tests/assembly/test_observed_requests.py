"""A served cluster counts its requests under /metrics and writes them to its audit log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.live import served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.cluster.serve import ServeError
from syncline.kube.client import Request
from syncline.kube.http import BlockingClient
from syncline.kube.kubeconfig import load_kubeconfig

SECRETS = "/api/v1/namespaces/default/secrets"


def test_requests_are_counted_and_written_to_the_audit_log_without_their_bodies(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with served_cluster(tmp_path, ClusterSettings(audit_log=log, controllers=())) as cluster:
        client = BlockingClient(load_kubeconfig(str(cluster.kubeconfig)))
        secret = {"metadata": {"name": "s"}, "stringData": {"password": "never-to-be-seen"}}
        client.send(Request("POST", SECRETS, body=secret)).or_raise()
        refused = client.send(Request("GET", "/metrics", headers={"impersonate-user": "jo"}))
        metrics = client.send(Request("GET", "/metrics")).raw.decode()
    assert refused.status == 403
    assert 'verb="POST"} 1' in metrics and "process_resident_memory_bytes " in metrics
    text = log.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert [(each["verb"], each["requestURI"], each["responseStatus"]["code"]) for each in events] == [
        ("create", SECRETS, 201),
        ("get", "/metrics", 403),
        ("get", "/metrics", 200),
    ]
    assert len({each["auditID"] for each in events}) == 3
    assert "never-to-be-seen" not in text


def test_an_audit_log_that_cannot_be_written_is_one_clear_refusal(tmp_path: Path) -> None:
    with (
        pytest.raises(ServeError, match="cannot write the audit log"),
        served_cluster(tmp_path, ClusterSettings(audit_log=tmp_path / "nowhere" / "audit.log")),
    ):
        pass

"""A served cluster counts its requests under /metrics and writes them to its audit log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.live import served_cluster

from syncline.assembly.embedded.auditing import AuditFile
from syncline.assembly.embedded.rotation import Rotation
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.cluster.access.audit import AuditRecord, AuditTrail
from syncline.cluster.access.auditpolicy import METADATA_OF_ALL
from syncline.cluster.serving.serve import ServeError
from syncline.kube.client import Request, Response
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"


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


POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/metrics"]}
- {level: RequestResponse, namespaces: [default]}
- {level: Metadata}
"""


def test_a_policy_decides_what_is_written_of_requests_watches_and_refused_credentials(tmp_path: Path) -> None:
    log, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    settings = ClusterSettings(audit_log=log, audit_policy=policy, controllers=())
    with served_cluster(tmp_path, settings) as cluster:
        access = load_kubeconfig(str(cluster.kubeconfig))
        client = BlockingClient(access)
        client.send(Request("POST", MAPS, body={"metadata": {"name": "m"}, "data": {"a": "seen"}})).or_raise()
        secret = {"metadata": {"name": "s"}, "stringData": {"password": "never-to-be-seen"}}
        answer = client.send(Request("POST", SECRETS, body=secret))
        list(client.watch(Request("GET", MAPS, {"watch": "1", "timeoutSeconds": "0"})))
        acting = {"impersonate-user": "jo"}
        client.send(Request("GET", MAPS, headers=acting))
        stranger = replace(access, certificate_pem="", key_pem=None, token=Secret("wrong"))
        assert BlockingClient(stranger).send(Request("GET", MAPS)).status == 401
        metrics = client.send(Request("GET", "/metrics")).raw.decode()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert "never-to-be-seen" not in log.read_text()
    assert [(each["verb"], each["stage"], each["level"], each["responseStatus"]["code"]) for each in events] == [
        ("create", "ResponseComplete", "RequestResponse", 201),
        ("create", "ResponseComplete", "Metadata", 201),
        ("watch", "ResponseStarted", "RequestResponse", 200),
        ("watch", "ResponseComplete", "RequestResponse", 200),
        ("list", "ResponseComplete", "RequestResponse", 403),
        ("list", "ResponseStarted", "RequestResponse", 401),
    ]
    assert events[0]["requestObject"]["data"] == {"a": "seen"} == events[0]["responseObject"]["data"]
    assert answer.headers["audit-id"] == events[1]["auditID"] and "requestObject" not in events[1]
    assert events[4]["user"]["username"] == "kubernetes-admin" and events[4]["impersonatedUser"]["username"] == "jo"
    assert events[5]["user"] == {} and "bearer" in events[5]["responseStatus"]["message"]
    assert "apiserver_audit_event_total{} " in metrics and 'apiserver_audit_error_total{plugin="log"} 0' in metrics


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod", "policy.yaml: it is no Policy of audit.k8s.io/v1"),
        ("a: [", "policy.yaml: is no YAML"),
        (None, "policy.yaml: cannot be read"),
    ],
)
def test_a_policy_that_cannot_be_used_is_one_clear_refusal(tmp_path: Path, text: str | None, message: str) -> None:
    policy = tmp_path / "policy.yaml"
    if text is not None:
        policy.write_text(text)
    settings = ClusterSettings(audit_log=tmp_path / "log", audit_policy=policy)
    with pytest.raises(ServeError, match=message), served_cluster(tmp_path, settings):
        pass


def test_a_policy_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = ClusterSettings(audit_policy=tmp_path / "policy.yaml")
    with pytest.raises(ServeError, match="no effect without an audit log"), served_cluster(tmp_path, settings):
        pass


def _records(count: int, clock: VirtualClock) -> list[AuditRecord]:
    records: list[AuditRecord] = []
    trail = AuditTrail(METADATA_OF_ALL, records.append, clock, Entropy(1))
    for _ in range(count):
        clock.advance(86_400)
        audited = trail.begin(Request("GET", "/x" * 200_000), None, "", clock.now())
        assert audited is not None
        trail.complete(audited, Response.of(200, {}))
    return records


def test_a_long_file_is_put_aside_and_old_ones_go_by_number_and_age(tmp_path: Path) -> None:
    """Each line has 400 KB and each file a megabyte, so two lines fill one; a line is written each day."""
    for name, rotation, kept in (
        ("all", Rotation(size_mb=1), 4),
        ("number", Rotation(size_mb=1, backups=2), 2),
        ("age", Rotation(size_mb=1, age_days=5), 3),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "audit-notes.log").write_text("mine")
        log = AuditFile(folder / "audit.log", rotation)
        for record in _records(10, VirtualClock()):
            log.note(record)
        log.close()
        aside = sorted(each.name for each in folder.glob("audit-2026*.log"))
        assert len(aside) == kept, (name, aside)
        assert (folder / "audit.log").read_bytes().count(b"\n") == 2
        assert (folder / "audit-notes.log").exists()
        assert log.written == 10 and log.lost == 0
    assert aside[-1] == "audit-2026-01-10T00-00-00.000.log"


def test_lines_that_find_no_room_are_counted_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.assembly.embedded.auditing.MAX_WAITING_BYTES", 1_500)
    log = AuditFile(tmp_path / "audit.log")
    first, second = _records(2, VirtualClock())
    body = replace(first, answer=b"x" * 2_000)
    log.note(body)
    log.note(second)
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert lines[-1]["kind"] == "Lost" and lines[-1]["count"] == log.lost == 1

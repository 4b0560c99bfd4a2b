"""A value of a Secret is in its Secret and in the repository that brings it, and in no output, record or status."""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_verbs_live import Repository
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.cli.main import main
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request

CORE = "c4n4ry7f3a2b"
"""In every spelling of the value that is not base64, however its quotes and accents are escaped."""
VALUE = f'p"é\\{CORE}'
ANY = ("127.0.0.1", 0)
OBJECTS = (
    "/api/v1/events",
    "/api/v1/pods",
    "/apis/events.k8s.io/v1/events",
    "/apis/batch/v1/jobs",
    "/apis/argoproj.io/v1alpha1/applications",
)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def spellings() -> list[str]:
    """The core as text, as base64 at each of three offsets, and as hex; each long enough not to be chance."""
    at = [base64.b64encode(b"x" * pad + CORE.encode())[4:-4].decode() for pad in range(3)]
    return [CORE, *at, CORE.encode().hex()]


def leaks(text: str) -> list[str]:
    """The neighbourhoods in which a spelling stands."""
    return [text[max(0, m.start() - 160) : m.end() + 40] for one in spellings() for m in re.finditer(one, text)]


def secret(name: str, body: dict[str, Any], *, annotations: dict[str, str] | None = None, **more: Any) -> str:
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": annotations or {}}}
    return json.dumps(made | body | more)


def hook(code: int) -> str:
    quick = {f"syncline.dev/{step}-seconds": "0" for step in ("pull", "start", "run")}
    reference = {"name": "PIN", "valueFrom": {"secretKeyRef": {"name": "plain", "key": "pin"}}}
    container = {"name": "c", "image": "sh", "env": [reference, {"name": "INLINE", "value": "$(PIN)"}]}
    template = {
        "metadata": {"annotations": quick | {"syncline.dev/exit-code": str(code)}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    annotations = {
        "argocd.argoproj.io/hook": "PostSync",
        "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
    }
    named = {"name": "after", "annotations": annotations}
    body = {"backoffLimit": 0, "template": template}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": named, "spec": body})


def good(turn: int) -> dict[str, str]:
    """Secrets written in every way that works; ``turn`` changes all values."""
    value = f"{VALUE}-{turn}"
    note = {"kubectl.kubernetes.io/last-applied-configuration": secret("noted", {"stringData": {"pin": value}})}
    listed = [json.loads(secret("listed", {"stringData": {"pin": value}}))]
    return {
        "plain": secret("plain", {"stringData": {"pin": value}}),
        "encoded": secret("encoded", {"data": {"pin": b64(value)}}, type="example.com/till"),
        "noted": secret("noted", {"stringData": {"pin": value}}, annotations=note),
        "list": json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}),
        "replaced": secret(
            "replaced", {"stringData": {"pin": value}}, annotations={"argocd.argoproj.io/sync-options": "Replace=true"}
        ),
        "forced": secret(
            "server-side",
            {"stringData": {"pin": value}},
            annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true"},
        ),
    }


HEAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: bad}\n"
PLAIN = secret("plain", {"stringData": {"pin": CORE}})
BUILT = "resources: [secret.yaml]\n"
BROKEN = {
    "broken-yaml": "stringData:\n  pin: 'CANARY\n",
    "bad-escape": 'stringData: {pin: "\\qCANARY"}\n',
    "an-anchor": "stringData: {pin: *CANARY}\n",
    "a-tag": "stringData: {pin: !!int CANARY}\n",
    "a-text-for-a-map": "stringData: CANARY\n  more: x\n",
}
KUSTOMIZED = {
    "kustomize-patch": "patches:\n- patch: |\n    kind: Secret\n    stringData: {pin: 'CANARY\n",
    "kustomize-json-patch": """patches: [{patch: '[{"op": "add", "path": "/data/x", "value": "CANARY"}]'}]""",
    "kustomize-broken-json-patch": """patches: [{patch: '[{"path": "/data/x", "value": "CANARY"', target: {}}]""",
    "kustomize-replacement": """replacements:
- source: {kind: Secret, name: plain, fieldPath: stringData.pin, options: {delimiter: '-', index: 5}}
  targets: [{select: {kind: Secret}, fieldPaths: [stringData.pin]}]
""",
}
CHART = {"Chart": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "values": "pin: CANARY\n"}
TEMPLATES = {
    "helm-anchor": "stringData: {pin: *{{ .Values.pin }}}\n",
    "helm-tree": "stringData: {pin: [{{ .Values.pin }}]}\n",
    "helm-broken": "stringData:\n  pin: '{{ .Values.pin }}\n",
    "helm-function": "stringData: {pin: {{ .Values.pin | fromJson | toDate }}}\n",
    "helm-index": "stringData: {pin: {{ index .Values.pin 900 }}}\n",
}
REFUSED: dict[str, str | dict[str, str]] = {
    "immutable": secret("frozen", {"stringData": {"pin": VALUE}}, immutable=True),
    "not-base64": secret("bad", {"data": {"pin": f"!{CORE}!"}}),
    "a-tree-for-a-text": secret("bad", {"stringData": {"pin": {"inner": CORE}}}),
    "a-list-for-a-text": secret("bad", {"data": {"pin": [CORE]}}),
    "data-is-a-text": secret("bad", {"data": CORE}),
    "data-is-a-list": secret("bad", {"stringData": [CORE]}),
    "bad-docker": secret("bad", {"stringData": {".dockerconfigjson": CORE}}, type="kubernetes.io/dockerconfigjson"),
    "bad-docker-json": secret(
        "bad", {"stringData": {".dockerconfigjson": f'{{"a": {CORE}'}}, type="kubernetes.io/dockerconfigjson"
    ),
    "no-tls-key": secret("bad", {"stringData": {"tls.crt": CORE}}, type="kubernetes.io/tls"),
    "a-bad-key": secret("bad", {"stringData": {"a key": CORE}}),
    "a-bad-name": secret("Bad_Name", {"stringData": {"pin": CORE}}),
    "server-side-bad": secret(
        "bad",
        {"data": {"pin": f"!{CORE}!"}},
        annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true"},
    ),
    "unknown-field": secret(
        "unknown",
        {"stringDatum": {"pin": CORE}},
        annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true"},
    ),
    **{name: HEAD + text for name, text in BROKEN.items()},
    "broken-json": '{"apiVersion": "v1", "kind": "Secret", "stringData": {"pin": "CANARY" "x"}}',
    "kustomize-literal": {"kustomization": "secretGenerator: [{name: s, literals: ['CANARY']}]"},
    **{name: {"kustomization": BUILT + text, "secret": PLAIN} for name, text in KUSTOMIZED.items()},
    "kustomize-anchor": {"kustomization": BUILT, "secret": HEAD + BROKEN["an-anchor"]},
    **{name: CHART | {"templates/secret": HEAD + text} for name, text in TEMPLATES.items()},
}
"""Secrets that something refuses: the parser, the dry run, the server, an immutable field."""


@dataclass
class Eavesdropper:
    """Runs commands, and keeps all that anybody could read of them."""

    served: Served
    folder: Path
    capture: pytest.CaptureFixture[str]
    heard: list[tuple[str, str]]

    def __call__(self, *arguments: str) -> str:
        self.capture.readouterr()
        main([*arguments])
        out, err = self.capture.readouterr()
        self.heard.append(("syncline " + " ".join(arguments), out + err))
        return out + err

    def look(self, name: str) -> None:
        """Every verb that shows something of an Application."""
        for verb in ("get", "diff", "history", "resources"):
            self("app", verb, name)
        for wanted in ("json", "yaml", "tree=detailed"):
            self("app", "get", name, "-o", wanted)
        self("app", "get", name, "--refresh")
        for wanted in ("json", "yaml"):
            self("app", "diff", name, "-o", wanted)
            self("plan", name, "-o", wanted)
            self("explain", name, "-o", wanted)
            self("app", "manifests", name, "-o", wanted)
        self("plan", name, "--prune", "--all", "--diff")
        self("explain", name)
        self("app", "manifests", name)
        self("app", "manifests", name, "--source", "live")
        self("app", "logs", name, "--kind", "Job", "--name", "after")
        self("app", "actions", "list", name)
        for target in ("secret/default/plain", "job/default/after", "secret/default/frozen"):
            self("explain", target)
            self("explain", target, "-o", "json")

    def records(self, log: str) -> None:
        """What the process keeps and serves besides: objects, Events, metrics, journal, audit log, its own log."""
        with Connection() as link:
            for path in OBJECTS:
                self.heard.append((path, json.dumps(link.ask(Request("GET", path)), ensure_ascii=False)))
            self.heard.append(("/metrics", link.send(Request("GET", "/metrics")).raw.decode()))
        port = self.served.cluster.gitops_ports[ANY]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            self.heard.append(("controllers' /metrics", answer.read().decode()))
        self.heard.append(("journal", self.served.cluster.journal.text()))
        self.heard.append(("audit log", (self.folder / "audit.log").read_text()))
        self.heard.append(("log", log))

    def leaked(self) -> list[str]:
        return [f"{where}: …{found}…" for where, text in self.heard for found in leaks(text)]


@pytest.fixture
def heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Eavesdropper]:
    gitops = GitOpsSettings(
        tmp_path / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600), metrics_listen=ANY
    )
    with served_cluster(tmp_path, ClusterSettings(nodes=1, audit_log=tmp_path / "audit.log"), gitops) as served:
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
        monkeypatch.delenv("KUBECTL_EXTERNAL_DIFF", raising=False)
        yield Eavesdropper(served, tmp_path, capsys, [])


def credentials() -> dict[str, Any]:
    """Credentials for repositories that nothing here uses, as an administrator keeps them."""
    fields = {"url": "https://git.example.com", "username": CORE, "password": VALUE}
    named = {"name": "creds", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "repo-creds"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named, "stringData": fields}


def test_a_value_of_a_secret_is_heard_nowhere(
    heard: Eavesdropper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert leaks(b64(VALUE)) and leaks(json.dumps(VALUE)), "a spelling would be heard"
    with Connection() as link:
        link.ask(Request("POST", "/api/v1/namespaces/argocd/secrets", body=credentials()))
    repository = Repository(tmp_path / "shop")
    repository.commit(**good(1), after=hook(0))
    heard("app", "create", "shop", "--repo", str(repository.folder), "--dest-namespace", "default")
    heard.look("shop")
    assert "Succeeded" in heard("app", "sync", "shop", "--timeout", "300")
    repository.commit(**good(2), after=hook(3))
    heard("app", "get", "shop", "--refresh")
    heard.look("shop")
    assert "Failed" in heard("app", "sync", "shop", "--timeout", "300")
    heard.look("shop")
    heard("repo", "list", "-o", "yaml")
    heard("cluster", "list", "-o", "yaml")
    heard.records(caplog.text)
    assert heard.leaked() == []


@pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="the extra helm is not installed")
def test_a_secret_that_is_refused_is_told_without_its_value(
    heard: Eavesdropper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Connection() as link:
        frozen = json.loads(secret("frozen", {"stringData": {"pin": "before"}}, immutable=True))
        link.ask(Request("POST", "/api/v1/namespaces/default/secrets", body=frozen))
    silent = []
    for name, text in REFUSED.items():
        folder = Repository(tmp_path / name)
        (folder.folder / "templates").mkdir()
        files = text if isinstance(text, dict) else {"bad": text}
        folder.commit(**{file: content.replace("CANARY", CORE) for file, content in files.items()})
        heard("app", "create", name, "--repo", str(folder.folder), "--dest-namespace", "default")
        heard("plan", name)
        ended = heard("app", "sync", name, "--timeout", "300")
        told = heard("explain", name)
        heard("app", "diff", name)
        heard("app", "manifests", name)
        if "Succeeded" in ended and name != "unknown-field":
            silent.append((name, ended, told))
    assert silent == [], "each of them is refused"
    for name in ("immutable", "not-base64", "broken-yaml"):
        heard.look(name)
    heard.records(caplog.text)
    assert heard.leaked() == []

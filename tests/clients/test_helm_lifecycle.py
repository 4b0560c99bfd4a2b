"""Helm itself against a served cluster: install, upgrade, rollback, uninstall, with hooks, definitions and waiting."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served

from syncline.cli.access.connection import Connection
from syncline.kube.client import Request

helm: Any = pytest.importorskip("helm_python", reason="pip install 'syncline[helm]'")

NAMESPACE = "helm-lifecycle"
WAIT_S = 300
QUICK = "{syncline.dev/pull-seconds: '0', syncline.dev/start-seconds: '0', syncline.dev/run-seconds: '0'}"
FILES = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\nappVersion: '1'\n",
    "values.yaml": "replicas: 1\ncolor: blue\nservice: ClusterIP\n",
    "crds/soups.yaml": """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: soups.helm.example}
spec:
  group: helm.example
  scope: Namespaced
  names: {plural: soups, singular: soup, kind: Soup}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
""",
    "templates/soup.yaml": "apiVersion: helm.example/v1\nkind: Soup\nmetadata: {name: leek}\n",
    "templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\n"
        "data: {color: '{{ .Values.color }}', revision: '{{ .Release.Revision }}'}\n"
    ),
    "templates/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:{{ .Values.color }}'}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: '{{ .Values.service }}', selector: {app: web}, ports: [{port: 80}]}
""",
    "templates/migrate.yaml": f"""apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {{helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: before-hook-creation}}
spec:
  template:
    metadata: {{annotations: {QUICK}}}
    spec: {{containers: [{{name: migrate, image: sh}}], restartPolicy: Never}}
""",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    return tmp_path / "shop"


@pytest.fixture
def link(served: Served) -> Iterator[Connection]:
    with Connection(str(served.kubeconfig)) as made:
        yield made


@pytest.fixture
def releases(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    configuration = importlib.import_module("helm_python").Config
    with configuration(kubeconfig_path=served.kubeconfig, namespace=NAMESPACE) as made:
        yield made


def observed(link: Connection, path: str, **query: str) -> Any:
    answer = link.send(Request("GET", path.replace("NS", f"namespaces/{NAMESPACE}"), query))
    return answer.obj if answer.ok else None


def test_a_release_lives_through_install_upgrade_rollback_and_uninstall(
    chart: Path, releases: Any, link: Connection
) -> None:
    made = releases.install(chart, "shop", {"replicas": 2}, create_namespace=True, wait="watcher", timeout=WAIT_S)
    assert made["name"] == "shop" and made["namespace"] == NAMESPACE
    web = observed(link, "/apis/apps/v1/NS/deployments/web")
    assert web["status"]["readyReplicas"] == 2, "Helm waited for it"
    assert web["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert observed(link, "/apis/batch/v1/NS/jobs/migrate")["status"]["succeeded"] == 1
    assert observed(link, "/apis/helm.example/v1/NS/soups/leek") is not None, "its definition came first"
    address = observed(link, "/api/v1/NS/services/web")["spec"]["clusterIP"]

    before = observed(link, "/apis/batch/v1/NS/jobs/migrate")["metadata"]["uid"]
    releases.upgrade(chart, "shop", {"replicas": 1, "color": "red"}, wait="watcher", timeout=WAIT_S)
    assert observed(link, "/api/v1/NS/configmaps/menu")["data"] == {"color": "red", "revision": "2"}
    assert observed(link, "/apis/batch/v1/NS/jobs/migrate")["metadata"]["uid"] != before, "the hook ran again"
    assert observed(link, "/apis/apps/v1/NS/deployments/web")["spec"]["replicas"] == 1
    assert observed(link, "/api/v1/NS/services/web")["spec"]["clusterIP"] == address

    with pytest.raises(helm.HelmError, match=r"spec\.type"):
        releases.upgrade(chart, "shop", {"service": "Nowhere"}, timeout=WAIT_S)
    releases.rollback("shop", version=1, wait="watcher", timeout=WAIT_S)
    assert observed(link, "/api/v1/NS/configmaps/menu")["data"] == {"color": "blue", "revision": "1"}
    assert observed(link, "/apis/apps/v1/NS/deployments/web")["spec"]["replicas"] == 2
    kept = observed(link, "/api/v1/NS/secrets", labelSelector="owner=helm")["items"]
    states = sorted((int(one["metadata"]["labels"]["version"]), one["metadata"]["labels"]["status"]) for one in kept)
    assert states == [(1, "superseded"), (2, "superseded"), (3, "failed"), (4, "deployed")]

    releases.uninstall("shop", wait="watcher", timeout=WAIT_S)
    assert observed(link, "/apis/apps/v1/NS/deployments/web") is None
    assert observed(link, "/api/v1/NS/secrets", labelSelector="owner=helm")["items"] == []
    assert observed(link, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/soups.helm.example") is not None
    link.ask(Request("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/soups.helm.example"))


def test_a_server_side_dry_run_changes_nothing_and_names_what_is_wrong(
    chart: Path, releases: Any, link: Connection
) -> None:
    releases.install(chart, "dry", create_namespace=True, dry_run="client")
    assert observed(link, "/api/v1/NS/configmaps/menu") is None
    (chart / "templates" / "bad.yaml").write_text("apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n")
    with pytest.raises(helm.HelmError, match='no matches for kind "Nothing" in version "v1"'):
        releases.install(chart, "bad", create_namespace=True, timeout=WAIT_S)

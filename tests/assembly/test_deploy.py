"""The manifests in ``deploy/``: they apply, and their rights are enough and no more than they say."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.assembly.controllers import APPS, MAP, MAPS, Cluster, start
from tests.live import served_cluster
from tests.sources.conftest import Upstream
from tools.image import USER, image

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.settings import ClusterSettings
from syncline.base.secret import Secret
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig
from syncline.kube.yaml.loading import load_all

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ACCOUNT = "/api/v1/namespaces/argocd/serviceaccounts/syncline-application-controller"


def manifests(name: str) -> list[Obj]:
    loaded = load_all((DEPLOY / name).read_text(), file=name)
    assert not loaded.report.errors
    return [document.value for document in loaded.documents if document.value is not None]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with served_cluster(tmp_path, ClusterSettings()) as served:
        found = Cluster(served)
        run_in_place(ensure_objects(manifests("controller.yaml")), found.api)
        yield found


def as_the_account(cluster: Cluster) -> ClusterAccess:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.ask(Request("POST", f"{ACCOUNT}/token", body=request))["status"]["token"]
    access = load_kubeconfig(cluster.served.kubeconfig)
    return replace(access, token=Secret(token), certificate_pem="", key_pem=None)


def test_with_both_manifests_the_controllers_do_their_work(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"a/map.yaml": MAP.format(name="a")})
    run_in_place(ensure_objects(manifests("applications-rights.yaml")), cluster.api)
    leader = LeaderSettings("a", "argocd", shards=2)
    running = start(cluster.served, tmp_path / "cache", leader, access=as_the_account(cluster))
    try:
        cluster.application("a", str(upstream.path), "a")
        cluster.synced("a")
    finally:
        running.end()
    assert cluster.ask(client.get(MAPS, "demo", "a"))["data"] == {"a": "1"}
    events = cluster.ask(Request("GET", "/api/v1/namespaces/argocd/events"))["items"]
    assert any(event["reason"] == "OperationStarted" for event in events)


def test_a_set_makes_changes_and_deletes_applications_with_the_rights_of_the_controllers(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"sets/one/map.yaml": MAP.format(name="one")})
    source = {"repoURL": str(upstream.path), "path": "{{path}}", "targetRevision": "HEAD"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "demo"}
    template = {
        "metadata": {"name": "{{path.basename}}", "finalizers": ["example.com/none-of-ours"]},
        "spec": {"project": "default", "source": source, "destination": destination},
    }
    git = {"repoURL": str(upstream.path), "revision": "HEAD", "directories": [{"path": "sets/*"}]}
    spec = {"generators": [{"git": git}], "template": template}
    made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "fleet"}, "spec": spec}
    running = start(cluster.served, tmp_path / "cache", LeaderSettings("a", "argocd"), access=as_the_account(cluster))
    try:
        path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets"
        running.await_known(cluster.ask(Request("POST", path, body=made)))
        cluster.watch_until(APPS, "argocd", "one", lambda _app: True)
        merge = {"content-type": "application/merge-patch+json"}
        change = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
        cluster.ask(Request("PATCH", f"{path}/fleet", {}, merge, change))
        cluster.watch_until(APPS, "argocd", "one", lambda app: dig(app, "metadata", "labels") == {"a": "b"})
        change = {"spec": {"generators": [{"list": {"elements": []}}]}}
        cluster.ask(Request("PATCH", f"{path}/fleet", {}, merge, change))
        cluster.watch_until(APPS, "argocd", "one", lambda app: bool(dig(app, "metadata", "deletionTimestamp")))
        sets = replace(APPS, kind="ApplicationSet", plural="applicationsets")
        cluster.watch_until(
            sets, "argocd", "fleet", lambda found: dig(found, "status", "health", "status") == "Healthy"
        )
    finally:
        running.end()
    events = cluster.ask(Request("GET", "/api/v1/namespaces/argocd/events"))["items"]
    assert {"created", "updated"} <= {event["reason"] for event in events}


def test_without_rights_for_what_applications_bring_the_refusal_names_the_missing_one(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"a/map.yaml": MAP.format(name="a")})
    leader = LeaderSettings("a", "argocd")
    running = start(cluster.served, tmp_path / "cache", leader, access=as_the_account(cluster))
    try:
        cluster.application("a", str(upstream.path), "a")
        state = cluster.watch_until(
            APPS, "argocd", "a", lambda app: "forbidden" in dig(app, "status", "operationState", "message", default="")
        )["status"]["operationState"]
    finally:
        running.end()
    assert 'cannot create resource "namespaces"' in state["message"]
    assert "system:serviceaccount:argocd:syncline-application-controller" in state["message"]


def test_the_deployment_asks_for_options_that_the_command_has() -> None:
    from syncline.cli.serving.controller import controller

    deployment = next(obj for obj in manifests("controller.yaml") if obj["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    context = controller.make_context("controller", list(arguments))
    assert context.params["shards"] == 1
    assert context.params["webhook_listen"] == "0.0.0.0:8081"


def test_the_deployment_of_the_agent_asks_for_options_that_the_command_has() -> None:
    from syncline.cli.fleet.agent import agent

    deployment = next(obj for obj in manifests("agent.yaml") if obj["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert agent.make_context("agent", list(arguments)).params["in_cluster"]


def test_an_image_says_what_the_deployment_runs_and_its_bytes_depend_on_its_layer_alone(tmp_path: Path) -> None:
    pod = next(m for m in manifests("controller.yaml") if m["kind"] == "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    one, two = tmp_path / "one.tar", tmp_path / "two.tar"
    digests = {image(b"layer" * 1000, container["image"], "amd64", 1_700_000_000, file) for file in (one, two)}
    assert len(digests) == 1 and one.read_bytes() == two.read_bytes()

    with tarfile.open(one) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] in digests and entry["annotations"]["io.containerd.image.name"] == container["image"]

    def blob(reference: Obj) -> bytes:
        content = files[reference["digest"].replace("sha256:", "blobs/sha256/")]
        assert len(content) == reference["size"]
        return content

    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    (layer,) = manifest["layers"]
    unpacked = hashlib.sha256(gzip.decompress(blob(layer))).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{unpacked}"]
    assert config["config"]["Entrypoint"] == container["command"][:1]
    assert pod["securityContext"]["runAsNonRoot"] and config["config"]["User"] == f"{USER}:{USER}"

"""Applications whose sources are no folders of a Git repository: charts, artifacts; and one that must be signed."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scenes.scenes import Repo, Stage, application
from tests.sources.charthttp import ChartRepository, OciRegistry
from tests.sources.test_charts import LAYER, MAP, packed, published
from tests.sources.test_signatures import person

from syncline.kube.objects import Obj, dig

pytest.importorskip("helm_python", reason="pip install 'syncline[helm]'")

CANARY = "c4n4ry-p4ssw0rd"
SECRETS = "/api/v1/namespaces/argocd/secrets"


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[ChartRepository]:
    published(tmp_path / "charts", tmp_path / "scratch", "demo", "1.0.0", "1.1.0", "2.0.0")
    served = ChartRepository(tmp_path / "charts", f"me:{CANARY}")
    yield served
    served.close()


def secret(name: str, **data: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def of(source: Obj) -> Obj:
    """An automated Application of a source."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {}},
        },
    }


def version(stage: Stage) -> str:
    found = stage.world.send("GET", "/api/v1/namespaces/default/configmaps/demo")
    return str(dig(found, "data", "version"))


def test_a_chart_of_a_range_follows_its_repository(tmp_path: Path, repository: ChartRepository) -> None:
    stage = Stage(tmp_path)
    stage.world.send("POST", SECRETS, secret("charts", url=repository.url, type="helm", username="me", password=CANARY))
    stage.create(of({"repoURL": repository.url, "chart": "demo", "targetRevision": "1.x"}))
    stage.healthy()
    app = stage.app()
    assert (app["status"]["sync"]["revision"], app["status"]["sourceType"], version(stage)) == (
        "1.1.0",
        "Helm",
        "1.1.0",
    )
    published(tmp_path / "charts", tmp_path / "scratch", "demo", "1.9.0")
    stage.world.driver.until(lambda: dig(stage.app(), "status", "sync", "revision") == "1.9.0", limit_s=600)
    stage.healthy()
    assert version(stage) == "1.9.0"
    assert [one["revision"] for one in stage.app()["status"]["history"]] == ["1.1.0", "1.9.0"]
    assert CANARY not in repr(stage.app()) + repr(list(stage.world.journal))


def test_a_chart_that_is_not_there_is_one_condition(tmp_path: Path, repository: ChartRepository) -> None:
    stage = Stage(tmp_path)
    stage.create(of({"repoURL": repository.url, "chart": "demo", "targetRevision": "9.x"}))
    stage.world.driver.until(lambda: bool(dig(stage.app(), "status", "conditions")), limit_s=600)
    (condition,) = stage.app()["status"]["conditions"]
    assert condition["type"] == "ComparisonError"
    assert "failed to get index: 401 Unauthorized; give credentials" in condition["message"]


def test_an_artifact_is_synced_by_its_digest(tmp_path: Path) -> None:
    registry = OciRegistry()
    url = f"oci://{registry.host}/team/app"
    first = registry.artifact("team/app", "1.0.0", (LAYER, packed({"a.yaml": MAP % "one"})))
    stage = Stage(tmp_path)
    stage.world.send("POST", SECRETS, secret("oci", url=url, type="oci", insecureOCIForceHttp="true"))
    stage.create(of({"repoURL": url, "path": ".", "targetRevision": "1.x"}))
    stage.healthy()
    assert stage.app()["status"]["sync"]["revision"] == first
    second = registry.artifact("team/app", "1.1.0", (LAYER, packed({"a.yaml": MAP % "two"})))
    stage.world.driver.until(lambda: dig(stage.app(), "status", "sync", "revision") == second, limit_s=600)
    assert second != first
    registry.close()


@pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")
def test_a_project_that_wants_signatures_takes_no_other_commit(tmp_path: Path, monkeypatch: Any) -> None:
    folder = Path(tempfile.mkdtemp(prefix="s"))  # sockets of gpg-agent want short paths
    home = folder / "jane"
    jane = person(home, "jane")
    try:
        repo = Repo(tmp_path / "repo")
        (repo.path / "app").mkdir()
        (repo.path / "app" / "a.yaml").write_text(MAP % "unsigned")
        repo.commit("unsigned")
        stage = Stage(tmp_path)
        keys = {"metadata": {"name": "argocd-gpg-keys-cm", "namespace": "argocd"}, "data": {jane.key: jane.armour}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", **keys}
        stage.world.send("POST", "/api/v1/namespaces/argocd/configmaps", body)
        project = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/default"
        wanted = {"spec": {"signatureKeys": [{"keyID": jane.key}]}}
        stage.world.send("PATCH", project, wanted, "application/merge-patch+json")
        stage.create(application(repo, "app", automated=True))
        stage.world.driver.until(lambda: bool(dig(stage.app(), "status", "conditions")), limit_s=600)
        (condition,) = stage.app()["status"]["conditions"]
        assert "GIT/GPG: Failed verifying revision" in condition["message"]
        assert "unsigned (key_id=)" in condition["message"]
        assert not dig(stage.app(), "status", "operationState")
        monkeypatch.setenv("GNUPGHOME", str(home))
        repo.git("-c", f"user.signingkey={jane.key}", "commit", "--allow-empty", "-q", "-S", "-m", "signed")
        stage.healthy()
    finally:
        ended = {**os.environ, "GNUPGHOME": str(home)}
        subprocess.run(["gpgconf", "--kill", "all"], env=ended, check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)

"""Who pushes where with whose credentials: attacks of tenants on the source hydrator, over a real Git host."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gitops.hydration.stage import PROJECTS, SECRETS, Stage, config
from tests.sources.githttp import PushServer

from syncline.kube.objects import Obj

WRITE, READ, TEAM = "wr1te-c4n4ry", "re4d-c4n4ry", "te4m-c4n4ry"


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"git:{password}".encode()).decode()


class Hosted(Stage):
    """The same over HTTP, where who reads and who writes have passwords of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.host = PushServer(folder, writers=(basic(WRITE), basic(TEAM)), readers=(basic(READ),))
        self.url = f"{self.host.url}/repo.git"
        self.secret("read", "repository", READ)

    def secret(self, name: str, kind: str, password: str, url: str = "", project: str = "") -> None:
        metadata = {"name": name, "labels": {"argocd.argoproj.io/secret-type": kind}}
        data = {"url": url or self.url, "username": "git", "password": password, "project": project}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
        self.world.send("POST", SECRETS, body)

    def project(self, name: str, *repos: str) -> None:
        spec: Obj = {"sourceRepos": list(repos), "destinations": [{"server": "*", "namespace": "*"}]}
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": name}, "spec": spec}
        self.world.send("POST", PROJECTS, body)

    def pushed_with(self) -> set[str]:
        return {given for given, what in self.host.observed if what == "push POST"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Hosted]:
    made = Hosted(tmp_path)
    yield made
    made.host.close()


def test_reading_and_pushing_have_credentials_of_their_own(stage: Hosted) -> None:
    stage.create("reader", repo=stage.url, branch="env/none")
    message = stage.operation("reader")["message"]
    assert "repository-write" in message and stage.branches() == ["main"]
    assert stage.pushed_with() == set(), "credentials for reading never push"
    stage.secret("write", "repo-write-creds", WRITE, url=stage.host.url + "/")
    stage.create("web", repo=stage.url, automated=True)
    assert stage.operation()["phase"] == "Hydrated", stage.operation()
    assert stage.pushed_with() == {basic(WRITE)}
    stage.driver.advance(30)
    assert stage.maps() == {"a": "v"}, "and what was pushed is read with the credentials for reading"
    shown = str([stage.app("web"), stage.app("reader"), [str(entry) for entry in stage.world.journal]])
    assert not any(canary in shown for canary in (WRITE, READ))


def test_write_credentials_of_a_project_are_for_its_branches_alone(stage: Hosted) -> None:
    stage.project("team", "*")
    stage.project("other", "*")
    stage.secret("team-write", "repository-write", TEAM, project="team")
    stage.create("web", repo=stage.url, project="team")
    assert stage.operation()["phase"] == "Hydrated" and stage.pushed_with() == {basic(TEAM)}
    before = stage.head()
    stage.create("theirs", repo=stage.url, project="other", branch="env/other")
    assert "repository-write" in stage.operation("theirs")["message"]
    stage.create("joins", repo=stage.url, project="other")
    assert "repository-write" in stage.operation("joins")["message"], (
        "a branch of two projects needs credentials for all"
    )
    assert stage.head() == before and "env/other" not in stage.branches()


def test_a_project_that_does_not_list_the_repository_gets_nothing_written(stage: Hosted) -> None:
    stage.project("tenant", "https://elsewhere.example.com/*")
    stage.secret("write", "repository-write", WRITE)
    asked = len(stage.host.observed)
    stage.create("web", repo=stage.url, project="tenant")
    assert "is not permitted in project 'tenant'" in stage.operation()["message"]
    stage.create("out", repo=stage.path, project="tenant", sync_repo=stage.url)
    assert "is not permitted in project 'tenant'" in stage.operation("out")["message"]
    assert stage.branches() == ["main"] and len(stage.host.observed) == asked, "nobody was asked either"
    stage.create("victim", repo=stage.url)
    assert stage.operation("victim")["phase"] == "Hydrated", "nobody stops others by joining them"
    assert stage.files()[2:] == [f"victim/{name}" for name in ("README.md", "hydrator.metadata", "manifest.yaml")]


def test_a_tenant_cannot_write_over_the_folder_of_another(stage: Hosted) -> None:
    stage.secret("write", "repository-write", WRITE)
    stage.create("web", repo=stage.url)
    before = stage.head()
    stage.commit({"evil/a.yaml": config("evil")})
    stage.create("evil", repo=stage.url, path="evil", folder="./x/../web", dry={"targetRevision": "HEAD"})
    assert "uses the same destination" in stage.operation("evil")["message"]
    assert stage.head() == before
    dry = stage.commit({"web/a.yaml": config("a", "2")})
    stage.driver.advance(300)
    assert stage.operation()["drySHA"] == dry and stage.operation()["phase"] == "Hydrated", "and stops nobody"
    assert "evil" not in stage.show("web/manifest.yaml")


def test_manifests_that_break_stop_the_hydration_of_their_own_project_alone(stage: Hosted) -> None:
    stage.project("tenant", "*")
    stage.secret("write", "repository-write", WRITE)
    stage.commit({"broken/a.yaml": "kind: [broken"})
    stage.create("broken", repo=stage.url, path="broken", project="tenant")
    stage.create("also", repo=stage.url, project="tenant")
    stage.create("web", repo=stage.url)
    assert stage.operation("web")["phase"] == "Hydrated"
    assert "has an error" in stage.operation("also")["message"] and "broken" in stage.operation("broken")["message"]
    assert stage.files()[2:] == [f"web/{name}" for name in ("README.md", "hydrator.metadata", "manifest.yaml")]


@pytest.mark.parametrize("folder", ["..", "../main", ".github/workflows", ".git", "a/../..", "web/../../x"])
def test_no_folder_leads_out_of_what_hydration_may_write(stage: Hosted, folder: str) -> None:
    stage.secret("write", "repository-write", WRITE)
    stage.create("web", repo=stage.url, folder=folder)
    assert stage.operation()["phase"] == "Failed"
    assert stage.branches() == ["main"]


def test_a_host_that_refuses_says_so_and_is_not_asked_in_a_loop(stage: Hosted) -> None:
    stage.secret("write", "repository-write", "wr0ng-c4n4ry")
    stage.create("web", repo=stage.url)
    assert stage.operation()["phase"] == "Failed" and "wr0ng-c4n4ry" not in str(stage.app())
    stage.driver.advance(10)
    asked = len(stage.host.observed)
    stage.driver.advance(60)
    assert len(stage.host.observed) == asked, "within the two minutes after a failure nothing is pushed"
    stage.world.send("DELETE", f"{SECRETS}/write")
    stage.secret("right", "repository-write", WRITE)
    stage.driver.advance(180)
    assert stage.operation()["phase"] == "Hydrated"

"""The methods of ApplicationService that write, over the port of ``syncline up``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.web.installed import DENIED, INVALID, NAMESPACE, UNKNOWN, Server, installation

from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig
from syncline.web.wire.api import read, writer

SERVICE = "/application.ApplicationService/"
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
RULES = "p, guest, applications, get, default/guarded, allow"


@dataclass
class Applications(Server):
    repository: str = ""
    commit: str = ""

    def app(self, name: str, **spec: Any) -> Obj:
        source = {"repoURL": self.repository, "path": "app"}
        there = {"server": "https://kubernetes.default.svc", "namespace": "default"}
        return {
            "metadata": {"name": name},
            "spec": {"project": "default", "source": source, "destination": there} | spec,
        }

    def made(self, name: str, **spec: Any) -> Obj:
        found: Obj = self.ask("Create", {"application": self.app(name, **spec)})
        return found

    def until(self, name: str, reached: Callable[[Obj], Any]) -> Obj:
        """Return the Application once it is so, as a watch shows it."""
        raw = writer().write("application.ApplicationQuery", {"name": name})
        stream = self.channel.unary_stream(SERVICE + "Watch")(raw, metadata=(("token", self.token),), timeout=60)
        for one in stream:
            app: Obj = read("argoproj.v1alpha1.ApplicationWatchEvent", one)["application"]
            if reached(app):
                stream.cancel()
                return app
        raise AssertionError("the watch ended")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applications]:
    folder = tmp_path_factory.mktemp("writes")
    repository = folder / "repository"
    (repository / "app").mkdir(parents=True)
    menu = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "menu"}, "data": {"a": "1"}}
    (repository / "app" / "menu.json").write_text(json.dumps(menu))
    commit = _committed(repository)
    with installation(folder, RULES, "application.Application") as made:
        yield Applications(**vars(made), repository=f"file://{repository}", commit=commit)


def _committed(repository: Path) -> str:
    def git(*words: str) -> str:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        done = subprocess.run(("git", *named, *words), cwd=repository, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    git("tag", "-am", "first", "v1")
    return git("rev-parse", "HEAD")


def test_creating_twice_changes_nothing_unless_it_is_asked_for(server: Applications) -> None:
    made = server.made("twice")
    assert server.made("twice")["metadata"]["uid"] == made["metadata"]["uid"]
    other = server.app("twice", revisionHistoryLimit=3)
    text = "existing application spec is different, use upsert flag to force update"
    assert server.refused("Create", {"application": other}) == (INVALID, text)
    found = server.ask("Create", {"application": other, "upsert": True})
    assert found["spec"]["revisionHistoryLimit"] == 3
    listed = server.ask("List", {"name": "twice"})["items"]
    assert [one["spec"]["revisionHistoryLimit"] for one in listed] == [3]


def test_a_spec_is_checked_before_it_is_written(server: Applications) -> None:
    invalid = "application spec for bad is invalid: InvalidSpecError: "
    for spec, text in (
        ({"project": "nope"}, 'app is not allowed in project "nope", or the project does not exist'),
        ({"destination": {"name": "far"}}, "application destination spec for bad is invalid: there are no clusters"),
        ({"source": {"repoURL": server.repository, "path": "nope"}}, f"{invalid}Unable to generate manifests in nope"),
        ({"source": {"repoURL": server.repository + "-not", "path": "app"}}, f"{invalid}repository not accessible"),
        ({"source": {"repoURL": server.repository}}, f"{invalid}spec.source.repoURL and either spec.source.path"),
    ):
        code, said = server.refused("Create", {"application": server.app("bad", **spec)})
        assert code is INVALID and said.startswith(text), said
    unread = {"application": server.app("unread", source={"repoURL": "https://git.example.invalid/x", "path": "p"})}
    assert server.ask("Create", unread | {"validate": False})["metadata"]["name"] == "unread"
    for name in ("../../secrets", "a/b", "A", "."):
        assert server.refused("Create", {"application": server.app(name)})[0] is INVALID
        assert server.refused("Delete", {"name": name}) == (DENIED, "permission denied")


def test_an_update_replaces_and_a_patch_changes(server: Applications) -> None:
    app = server.made("changed")
    app["metadata"]["labels"] = {"a": "b"}
    app["spec"]["revisionHistoryLimit"] = 4
    assert server.ask("Update", {"application": app})["metadata"]["labels"] == {"a": "b"}
    spec = server.ask("UpdateSpec", {"name": "changed", "spec": app["spec"] | {"revisionHistoryLimit": 5}})
    assert spec["revisionHistoryLimit"] == 5
    patch = '[{"op": "replace", "path": "/spec/revisionHistoryLimit", "value": 6}]'
    assert server.ask("Patch", {"name": "changed", "patch": patch})["spec"]["revisionHistoryLimit"] == 6
    merge = {"name": "changed", "patchType": "merge", "patch": '{"metadata": {"labels": {"a": null}}}'}
    assert "labels" not in server.ask("Patch", merge)["metadata"]
    assert server.refused("Patch", merge | {"patchType": "x"}) == (INVALID, "Patch type 'x' is not supported")
    assert server.refused("Patch", merge | {"patch": "{"})[0] is UNKNOWN


def test_a_sync_runs_at_the_commit_and_rolls_back(server: Applications) -> None:
    server.made("synced")
    found = server.ask("Sync", {"name": "synced", "prune": True, "infos": [{"name": "why", "value": "test"}]})
    assert found["operation"]["sync"]["revision"] == server.commit
    assert found["operation"]["initiatedBy"] == {"username": "admin"}
    ended = server.until("synced", lambda app: dig(app, "status", "operationState", "phase") == "Succeeded")
    assert ended["status"]["history"][0]["revision"] == server.commit
    text = "application argocd/synced does not have deployment with id 9"
    assert server.refused("Rollback", {"name": "synced", "id": 9}) == (INVALID, text)
    idle = "Unable to terminate operation. No operation is in progress"
    assert server.refused("TerminateOperation", {"name": "synced"}) == (INVALID, idle)
    begun = server.ask("Rollback", {"name": "synced", "id": 0})["operation"]["sync"]
    assert (begun["revision"], begun["syncStrategy"]) == (server.commit, {"apply": {}})
    events = server.client.send(Request("GET", f"{NAMESPACE}/events")).or_raise()["items"]
    said = [one["message"] for one in events if one["involvedObject"]["name"] == "synced"]
    assert f"admin initiated sync to HEAD ({server.commit})" in said
    assert {"admin created application", "admin initiated rollback to 0"} <= set(said)


def test_a_commit_says_who_made_it_and_why(server: Applications) -> None:
    server.made("described")
    asked = {"name": "described", "revision": server.commit}
    found = server.ask("RevisionMetadata", asked)
    assert (found["author"], found["message"]) == ("a <a@example.com>", "one")
    assert server.refused("RevisionMetadata", asked | {"revision": "main"}) == (
        UNKNOWN,
        "revision main must be resolved",
    )
    text = "error getting app source by source index and version ID: "
    code, said = server.refused("RevisionMetadata", asked | {"sourceIndex": 1})
    assert (code, said) == (UNKNOWN, f"{text}source index 1 not found because there is only 1 source")
    assert server.refused("RevisionMetadata", asked | {"versionId": 7})[1].startswith(text)
    text = "no chart found for application: described"
    assert server.refused("RevisionChartDetails", asked) == (UNKNOWN, text)


def test_automation_keeps_to_its_revision(server: Applications) -> None:
    source = {"repoURL": server.repository, "path": "app", "targetRevision": "main"}
    server.made("automated", source=source, syncPolicy={"automated": {}})
    text = "Cannot sync to other: auto-sync currently set to main"
    assert server.refused("Sync", {"name": "automated", "revision": "other"}) == (PRECONDITION, text)
    text = "rollback cannot be initiated when auto-sync is enabled"
    assert server.refused("Rollback", {"name": "automated", "id": 0}) == (PRECONDITION, text)
    code, said = server.refused("Sync", {"name": "automated", "revision": "other", "dryRun": True})
    assert code is PRECONDITION and said.startswith("error resolving repo revision: ")


def test_a_window_blocks_and_is_shown(server: Applications) -> None:
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": ["*"]}
    body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "closed"},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "syncWindows": [window],
        },
    }
    server.ask("Create", {"project": body}, service="project.Project")
    server.made("windowed", project="closed")
    assert server.refused("Sync", {"name": "windowed"}) == (DENIED, "cannot sync: blocked by sync window")
    shown = {"kind": "deny", "schedule": "* * * * *", "duration": "24h", "manualSync": False}
    found = server.ask("GetApplicationSyncWindows", {"name": "windowed"})
    assert found == {"activeWindows": [shown], "assignedWindows": [shown], "canSync": False}


def test_a_deletion_sets_the_finalizer_of_its_policy(server: Applications) -> None:
    server.made("gone")
    text = "cannot set propagation policy when cascading is disabled"
    asked = {"name": "gone", "cascade": False, "propagationPolicy": "foreground"}
    assert server.refused("Delete", asked) == (INVALID, text)
    assert server.ask("Delete", {"name": "gone", "propagationPolicy": "background"}) == {}
    assert server.refused("Delete", {"name": "gone-not"}) == (DENIED, "permission denied")


def test_each_right_is_asked_for(server: Applications) -> None:
    server.made("guarded")
    token = server.login("guest")
    app = {"application": server.app("guarded")}
    for method, action, request in (
        ("Create", "create", app),
        ("Update", "update", app),
        ("Patch", "update", {"name": "guarded", "patch": "[]"}),
        ("Delete", "delete", {"name": "guarded"}),
        ("Sync", "sync", {"name": "guarded"}),
    ):
        code, said = server.refused(method, request, token)
        right = f"permission denied: applications, {action}, default/guarded, sub: guest, iat: "
        assert code is DENIED and said.startswith(right), said
    for method in ("Rollback", "TerminateOperation", "UpdateSpec"):
        request = {"name": "guarded"} | ({"spec": app["application"]["spec"]} if method == "UpdateSpec" else {})
        assert server.refused(method, request, token) == (DENIED, "permission denied")

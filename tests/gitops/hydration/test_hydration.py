"""The source hydrator over real repositories in virtual time: branches, status, requests, failures, projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.gitops.hydration.stage import APPS, PREFIX, PROJECTS, Stage, config

from syncline.kube.objects import dig


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_dry_commit_is_rendered_committed_noted_and_synced(stage: Stage) -> None:
    dry = stage.commit({"web/a.yaml": config("a", "1")}, "change a\n\nwhy it is changed\n\nSigned-off-by: T <t@e.com>")
    stage.create(automated=True)
    operation, head = stage.operation(), stage.head()
    assert operation["phase"] == "Hydrated" and operation["message"] == ""
    assert (operation["drySHA"], operation["hydratedSHA"]) == (dry, head)
    assert operation["startedAt"] and operation["finishedAt"]
    hydrator = stage.app()["spec"]["sourceHydrator"]
    assert operation["sourceHydrator"] == hydrator
    last = {"drySHA": dry, "hydratedSHA": head, "sourceHydrator": hydrator}
    assert stage.status()["lastSuccessfulOperation"] == last
    assert stage.status()["lastComparedDryRevision"] == dry
    assert stage.note(head) == {"drySha": dry}
    assert stage.files() == [
        ".gitattributes",
        "hydrator.metadata",
        "web/README.md",
        "web/hydrator.metadata",
        "web/manifest.yaml",
    ]
    manifest = 'apiVersion: v1\ndata:\n  k: "1"\nkind: ConfigMap\nmetadata:\n  name: a'
    assert stage.show("web/manifest.yaml") == manifest, "no tracking data in Git"
    told = json.loads(stage.show("hydrator.metadata"))
    assert told["drySha"] == dry and told["subject"] == "change a" and told["author"] == "t <t@example.com>"
    assert list(told) == ["repoURL", "drySha", "author", "date", "subject", "body"]
    message = stage.git("log", "-1", "--format=%B", "env/test")
    assert message.splitlines()[0] == f"{dry[:7]}: change a"
    assert message.endswith("Co-authored-by: t <t@example.com>")
    assert stage.git("log", "-1", "--format=%an <%ae>", "env/test") == "Argo CD <argo-cd@example.com>"
    assert dry in stage.show("web/README.md")
    stage.driver.advance(30)
    assert stage.maps() == {"a": "1"}
    sync = stage.app()["status"]["sync"]
    assert (sync["status"], sync["revision"]) == ("Synced", head)
    assert sync["comparedTo"]["source"] == {"repoURL": str(stage.path), "path": "web", "targetRevision": "env/test"}


def test_a_new_dry_commit_is_found_by_polling_and_one_without_effect_makes_a_note_alone(stage: Stage) -> None:
    stage.create(automated=True)
    first = stage.head()
    started = stage.operation()["startedAt"]
    stage.driver.advance(600)
    assert stage.operation()["startedAt"] == started, "nothing new, nothing to do"
    dry = stage.commit({"web/README.md": "words"})
    stage.driver.advance(600)
    assert stage.operation()["drySHA"] == dry and stage.operation()["hydratedSHA"] == first == stage.head()
    assert stage.note(first) == {"drySha": dry}
    dry = stage.commit({"web/a.yaml": config("a", "2")})
    stage.driver.advance(600)
    assert stage.operation()["drySHA"] == dry and stage.head() != first
    assert stage.maps() == {"a": "2"}


def test_a_staging_branch_is_pushed_and_the_sync_branch_waits(stage: Stage) -> None:
    stage.create(staged="env/test-next", automated=True)
    assert stage.operation()["phase"] == "Hydrated"
    assert "web/manifest.yaml" in stage.files("env/test-next")
    assert stage.files("env/test") == [] and stage.maps() == {}
    told = {one["type"]: one["message"] for one in stage.app()["status"]["conditions"]}
    assert told["ComparisonError"].endswith("waiting for an external process to update env/test from env/test-next")
    stage.git("branch", "-f", "env/test", "env/test-next")
    stage.driver.advance(600)
    assert stage.maps() == {"a": "v"}


def test_applications_of_one_branch_share_a_commit(stage: Stage) -> None:
    dry = stage.commit({"web/a.yaml": config("a"), "db/b.yaml": config("b")})
    stage.create("web")
    stage.create("db", path="db")
    assert stage.operation("db")["phase"] == "Hydrated", "one that joins is hydrated, though the dry commit is old"
    assert {"web/manifest.yaml", "db/manifest.yaml"} <= set(stage.files())
    assert stage.note(stage.head()) == {"drySha": dry}
    before = stage.head()
    stage.commit({"web/a.yaml": config("a", "2"), "db/b.yaml": config("b", "2")})
    stage.driver.advance(600)
    assert stage.git("rev-parse", "env/test~1") == before, "both in one commit"
    assert stage.operation("web")["hydratedSHA"] == stage.operation("db")["hydratedSHA"] == stage.head()


def test_one_application_that_cannot_be_rendered_keeps_all_of_its_branch(stage: Stage) -> None:
    stage.create("web")
    stage.create("db", path="web")
    before = stage.head()
    dry = stage.commit({"web/a.yaml": "kind: [broken"})
    stage.driver.advance(300)
    for name in ("web", "db"):
        operation = stage.operation(name)
        assert operation["phase"] == "Failed" and operation["drySHA"] == dry and operation["finishedAt"]
        assert stage.status(name)["lastComparedDryRevision"] == dry
        assert stage.status(name)["lastSuccessfulOperation"]["hydratedSHA"] == before
    assert stage.operation("db")["message"].startswith("Failed to hydrate: failed to get manifests: ")
    assert stage.operation("web")["message"] == (
        "Failed to hydrate: cannot hydrate because application argocd/db has an error"
    )
    assert stage.head() == before
    stage.commit({"web/a.yaml": config("a", "good")})
    stage.driver.advance(300)
    assert stage.operation("web")["phase"] == stage.operation("db")["phase"] == "Hydrated"


@pytest.mark.parametrize("kind", ["normal", "hard"])
def test_a_request_looks_at_once_and_goes_when_it_is_answered(stage: Stage, kind: str) -> None:
    stage.create()
    dry = stage.commit({"web/a.yaml": config("a", "2")})
    stage.ask(kind=kind, stamp="2026-01-01T00:00:00Z")
    assert stage.operation()["drySHA"] == dry
    assert not stage.asks()
    started = stage.operation()["startedAt"]
    stage.driver.advance(10)
    stage.ask(kind=kind)
    assert not stage.asks()
    assert (stage.operation()["startedAt"] == started) is (kind == "normal"), "only hard hydrates what did not change"


def test_a_failure_is_repeated_after_two_minutes_or_when_somebody_asks(stage: Stage) -> None:
    stage.patch(f"{PROJECTS}/default", {"spec": {"sourceRepos": ["https://example.com/*"]}})
    stage.create()
    message = stage.operation()["message"]
    assert message == (f"Failed to hydrate: application repo {stage.path} is not permitted in project 'default'")
    assert stage.branches() == ["main"], "nothing is read or written"
    version = stage.app()["metadata"]["resourceVersion"]
    stage.driver.advance(600)
    assert stage.app()["metadata"]["resourceVersion"] == version, "a failure that stands is written once"
    stage.patch(f"{PROJECTS}/default", {"spec": {"sourceRepos": ["*"]}})
    stage.ask()
    assert stage.operation()["phase"] == "Hydrated"


def test_a_source_that_cannot_be_read_fails_the_first_hydration_and_keeps_later_ones(stage: Stage) -> None:
    stage.create(dry={"targetRevision": "nosuch"})
    assert "unable to resolve 'nosuch' to a commit SHA" in stage.operation()["message"]
    stage.dry.run("push", "--quiet", "origin", "HEAD:nosuch")
    stage.driver.advance(400)
    assert stage.operation()["phase"] == "Hydrated"
    stage.git("branch", "-D", "nosuch")
    stage.driver.advance(600)
    assert stage.operation()["phase"] == "Hydrated", "what was hydrated stays so"
    stage.ask()
    assert stage.operation()["phase"] == "Failed" and not stage.asks()


def test_a_change_of_the_spec_is_hydrated_at_the_same_dry_commit(stage: Stage) -> None:
    stage.create()
    dry = stage.operation()["drySHA"]
    stage.patch(f"{APPS}/web", {"spec": {"sourceHydrator": {"syncSource": {"targetBranch": "env/other"}}}})
    stage.driver.advance(5)
    assert "web/manifest.yaml" in stage.files("env/other")
    assert stage.operation()["drySHA"] == dry and stage.operation()["hydratedSHA"] == stage.head("env/other")


def test_a_hydration_that_was_interrupted_is_repeated_and_writes_nothing_twice(stage: Stage) -> None:
    stage.create()
    before = stage.head()
    operation = stage.operation()
    running = {"phase": "Hydrating", "startedAt": operation["startedAt"], "message": ""}
    cut = running | dict.fromkeys(("finishedAt", "drySHA", "hydratedSHA"))
    stage.patch(f"{APPS}/web", {"status": {"sourceHydrator": {"currentOperation": cut}}})
    stage.world.start_gitops()
    stage.driver.advance(5)
    assert stage.operation()["phase"] == "Hydrated" and stage.operation()["hydratedSHA"] == before == stage.head()


def test_files_outside_of_what_generates_the_manifests_hydrate_nothing(stage: Stage) -> None:
    stage.commit({"lib/x.txt": "1", "other/y.txt": "1"})
    stage.create(annotations={PREFIX + "manifest-generate-paths": ".;/lib"})
    first, note = stage.operation()["drySHA"], stage.note(stage.head())
    dry = stage.commit({"other/y.txt": "2"})
    stage.driver.advance(600)
    assert stage.operation()["drySHA"] == first and stage.status()["lastComparedDryRevision"] == dry
    assert stage.note(stage.head()) == note
    dry = stage.commit({"lib/x.txt": "2"})
    stage.driver.advance(600)
    assert stage.operation()["drySHA"] == dry


def test_templates_and_author_come_from_the_settings(stage: Stage) -> None:
    pytest.importorskip("helm_python", reason="the extra helm is not installed")
    data = {
        "sourceHydrator.commitMessageTemplate": "{{ .metadata.drySha | trunc 8 }} by {{ .metadata.author }}",
        "sourceHydrator.readmeMessageTemplate": "from {{ .RepoURL }}{{ range .Commands }} {{ . }}{{ end }}",
        "commit.author.name": "Bot",
    }
    stage.set_up("argocd-cm", data)
    stage.create()
    dry = stage.operation()["drySHA"]
    assert stage.git("log", "-1", "--format=%an <%ae>|%s", "env/test") == (
        f"Bot <argo-cd@example.com>|{dry[:8]} by t <t@example.com>"
    )
    assert stage.show("web/README.md") == f"from {stage.path}"
    stage.set_up("argocd-cm", {"sourceHydrator.commitMessageTemplate": "{{ .nope"})
    stage.commit({"web/a.yaml": config("a", "2")})
    stage.ask()
    assert "sourceHydrator.commitMessageTemplate" in stage.operation()["message"]


def test_hydration_is_off_unless_the_installation_enables_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, enabled=False)
    stage.create()
    assert stage.status() == {} and stage.branches() == ["main"]
    told = {one["type"]: one["message"] for one in stage.app()["status"]["conditions"]}
    assert "hydrator.enabled" in told["ComparisonError"]
    stage.set_up("argocd-cmd-params-cm", {"hydrator.enabled": "true"})
    stage.driver.advance(5)
    assert stage.operation()["phase"] == "Hydrated"


def test_an_application_that_goes_is_left_out(stage: Stage) -> None:
    stage.create("web")
    stage.create("db", path="missing")
    assert stage.operation("db")["phase"] == "Failed"
    stage.world.send("DELETE", f"{APPS}/db")
    stage.commit({"web/a.yaml": config("a", "2")})
    stage.driver.advance(600)
    assert stage.operation("web")["phase"] == "Hydrated"
    assert dig(stage.app("web"), "status", "sync", "revision") == stage.head()

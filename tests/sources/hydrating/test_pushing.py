"""Hydrated commits in real repositories: branches, notes, files, races, hostile trees, credentials and signatures."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import PushServer

from syncline.base.secret import Secret
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.hydrating.pushing import HydratedFolder, HydratedRepository, HydratedWrite
from syncline.sources.remote.border import Border
from syncline.sources.remote.credentials import CredentialStore, RepositoryAccess

DRY = "1" * 40


class Bare:
    """A bare repository as a host keeps it, with one dry commit on ``main``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "repo.git"
        source = Upstream(folder / "work")
        source.commit({"dry/a.yaml": "kind: A\n", "README.md": "mine\n"})
        source.run("clone", "--quiet", "--bare", str(source.path), str(self.path), inside=False)

    def run(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def files(self, branch: str) -> list[str]:
        return self.run("ls-tree", "-r", "--name-only", branch).splitlines()

    def note(self, commit: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.run("notes", "--ref=hydrator.metadata", "show", commit))
        return found

    def put(self, branch: str, path: str, content: str, mode: str = "100644") -> None:
        """Somebody else's commit."""
        script = ["git", "-C", str(self.path), "-c", "user.name=o", "-c", "user.email=o@example.com"]

        def git(*arguments: str, stdin: str = "", index: bool = True) -> str:
            env = {"GIT_INDEX_FILE": str(self.path / "other-index"), "PATH": "/usr/bin:/bin"}
            found = subprocess.run(
                [*script, *arguments], input=stdin, capture_output=True, text=True, check=True, env=env
            )
            return found.stdout.strip()

        git("read-tree", branch)
        blob = git("hash-object", "-w", "--stdin", stdin=content)
        git("update-index", "--add", "--replace", "--cacheinfo", f"{mode},{blob},{path}")
        made = git("commit-tree", git("write-tree"), "-p", branch, "-m", "other")
        git("update-ref", f"refs/heads/{branch}", made)


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def writer(tmp_path: Path, url: str, access: RepositoryAccess | None = None) -> HydratedRepository:
    border = Border()
    border.learn(CredentialStore(pushing=((access,) if access else (), ())))
    git = Git(GitSettings(tmp_path / "cache", allow_local=True), border)
    return git.writable(border.judge_writing(url, {"default"}, local=True), HydratedRepository)


def wanted(dry: str = DRY, **manifests: str) -> HydratedWrite:
    def folder(name: str, text: str) -> HydratedFolder:
        return HydratedFolder(f"apps/{name}", text.encode(), lambda: {"README.md": f"{name} at {dry}".encode()})

    return HydratedWrite(
        sync_branch="env/test",
        target_branch="env/test",
        dry_sha=dry,
        folders=tuple(folder(name, text) for name, text in manifests.items()),
        root={"hydrator.metadata": dry.encode(), ".gitattributes": b"a"},
        message="subject\n\nbody\n",
        author="Bot",
        email="bot@example.com",
        when=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def test_a_branch_that_is_missing_begins_empty_and_holds_what_is_written(tmp_path: Path, bare: Bare) -> None:
    sha = writer(tmp_path, str(bare.path)).write(wanted(web="kind: W\n", db="kind: D\n"))
    assert bare.run("rev-parse", "env/test") == sha
    assert bare.files("env/test") == [
        ".gitattributes",
        "apps/db/README.md",
        "apps/db/manifest.yaml",
        "apps/web/README.md",
        "apps/web/manifest.yaml",
        "hydrator.metadata",
    ]
    assert bare.run("show", "env/test:apps/web/manifest.yaml") == "kind: W"
    shown = bare.run("log", "--format=%an <%ae> %cn %aI %s|%b", "env/test").splitlines()
    assert shown[0] == "Bot <bot@example.com> Bot 2026-01-02T03:04:05+00:00 subject|body"
    assert shown[-1].endswith("Initial commit for env/test|")
    assert bare.note(sha) == {"drySha": DRY}
    assert bare.files("main") == ["README.md", "dry/a.yaml"], "other branches stay"


def test_manifests_that_did_not_change_make_no_commit_but_a_note(tmp_path: Path, bare: Bare) -> None:
    repository = writer(tmp_path, str(bare.path))
    first = repository.write(wanted(web="kind: W\n"))
    again = "2" * 40
    assert repository.write(wanted(again, web="kind: W\n")) == first
    assert bare.run("rev-parse", "env/test") == first
    assert bare.note(first) == {"drySha": again}
    notes = bare.run("rev-parse", "refs/notes/hydrator.metadata")
    assert repository.write(wanted(again, web="kind: W\n")) == first
    assert bare.run("rev-parse", "refs/notes/hydrator.metadata") == notes, "the same dry commit is noted once"


def test_only_folders_whose_manifest_changed_are_written(tmp_path: Path, bare: Bare) -> None:
    repository = writer(tmp_path, str(bare.path))
    repository.write(wanted(web="kind: W\n", db="kind: D\n"))
    bare.put("env/test", "apps/web/left-over.yaml", "kind: Old\n")
    again = "2" * 40
    repository.write(wanted(again, web="kind: W2\n", db="kind: D\n"))
    assert bare.run("show", "env/test:apps/web/README.md") == f"web at {again}"
    assert bare.run("show", "env/test:apps/db/README.md") == f"db at {DRY}"
    assert bare.run("show", "env/test:hydrator.metadata") == again
    assert "apps/web/left-over.yaml" in bare.files("env/test"), "files of others stay"


def test_a_target_branch_begins_at_the_sync_branch(tmp_path: Path, bare: Bare) -> None:
    repository = writer(tmp_path, str(bare.path))
    first = repository.write(wanted(web="kind: W\n"))
    staged = replace(wanted("2" * 40, web="kind: W2\n"), target_branch="env/test-next")
    sha = repository.write(staged)
    assert bare.run("rev-parse", "env/test-next~1") == first == bare.run("rev-parse", "env/test")
    assert bare.note(sha) == {"drySha": "2" * 40}


class Overtaken(HydratedRepository):
    """Before its first pushes somebody else pushes."""

    meanwhile: tuple[Callable[[], None], ...] = ()

    def _push(self, refspec: str, *, last: bool) -> bool:
        if type(self).meanwhile:
            first, *rest = type(self).meanwhile
            type(self).meanwhile = tuple(rest)
            first()
        return super()._push(refspec, last=last)


def test_what_others_pushed_meanwhile_is_kept(tmp_path: Path, bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    writer(tmp_path, str(bare.path)).write(wanted(web="kind: W\n"))

    def branch() -> None:
        bare.put("env/test", "theirs.yaml", "kind: T\n")

    def note() -> None:
        other = ["-c", "user.name=o", "-c", "user.email=o@e"]
        bare.run(*other, "notes", "--ref=hydrator.metadata", "add", "-m", '{"drySha":"x"}', "main")

    monkeypatch.setattr(Overtaken, "meanwhile", (branch, branch, lambda: None, note))
    border = Border()
    git = Git(GitSettings(tmp_path / "other", allow_local=True), border)
    repository = git.writable(border.judge_writing(str(bare.path), {"default"}, local=True), Overtaken)
    sha = repository.write(wanted("2" * 40, web="kind: W2\n"))
    assert "theirs.yaml" in bare.files("env/test")
    assert bare.run("show", "env/test:apps/web/manifest.yaml") == "kind: W2"
    assert bare.note(sha) == {"drySha": "2" * 40} and bare.note("main") == {"drySha": "x"}
    assert Overtaken.meanwhile == ()


@pytest.mark.parametrize(
    ("path", "content", "mode"),
    [
        ("apps", "/etc", "120000"),
        ("apps", "a file", "100644"),
        ("apps/web", "../../outside", "120000"),
        ("apps/web/manifest.yaml/inner", "a folder", "100644"),
    ],
)
def test_what_stands_in_the_way_is_refused_and_no_link_is_followed(
    tmp_path: Path, bare: Bare, path: str, content: str, mode: str
) -> None:
    bare.run("branch", "env/test", "main")
    bare.put("env/test", path, content, mode)
    before = bare.run("rev-parse", "env/test")
    with pytest.raises(SourceError, match="hydrated commit"):
        writer(tmp_path, str(bare.path)).write(wanted(web="kind: W\n"))
    assert bare.run("rev-parse", "env/test") == before
    assert not (tmp_path / "outside").exists()


def test_a_manifest_that_is_a_link_becomes_a_file(tmp_path: Path, bare: Bare) -> None:
    bare.run("branch", "env/test", "main")
    bare.put("env/test", "apps/web/manifest.yaml", "../../README.md", "120000")
    writer(tmp_path, str(bare.path)).write(wanted(web="kind: W\n"))
    assert bare.run("ls-tree", "env/test", "apps/web/manifest.yaml").startswith("100644")
    assert bare.run("show", "env/test:README.md") == "mine"


def test_a_repository_on_this_machine_runs_nothing_of_its_own(tmp_path: Path, bare: Bare) -> None:
    ran = tmp_path / "ran"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        hook = bare.path / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    bare.run("config", "core.fsmonitor", f"touch {ran}")
    bare.run("config", "core.alternateRefsCommand", f"touch {ran}; :")
    (bare.path / "objects/info").mkdir(exist_ok=True)
    (bare.path / "objects/info/alternates").write_text(f"{tmp_path / 'work/.git/objects'}\n")
    writer(tmp_path, str(bare.path)).write(wanted(web="kind: W\n"))
    assert not ran.exists()
    assert "apps/web/manifest.yaml" in bare.files("env/test")


# -- over HTTP ------------------------------------------------------------------------------------------------------


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


WRITER, READER = basic("bot", "wr1te-s3cret"), basic("reader", "re4d-s3cret")


@pytest.fixture
def host(tmp_path: Path, bare: Bare) -> Iterator[PushServer]:
    server = PushServer(tmp_path, writers=(WRITER,), readers=(READER,))
    yield server
    server.close()


def test_a_push_over_http_shows_the_credentials_for_writing(tmp_path: Path, bare: Bare, host: PushServer) -> None:
    url = f"{host.url}/repo.git"
    access = RepositoryAccess(url, username="bot", password=Secret("wr1te-s3cret"))
    sha = writer(tmp_path, url, access).write(wanted(web="kind: W\n"))
    assert bare.run("rev-parse", "env/test") == sha
    assert bare.note(sha) == {"drySha": DRY}
    assert {given for given, _ in host.observed} <= {WRITER, ""}


@pytest.mark.parametrize("access", [None, ("reader", "re4d-s3cret"), ("bot", "wrong")])
def test_without_credentials_that_may_push_nothing_is_written(
    tmp_path: Path, bare: Bare, host: PushServer, access: tuple[str, str] | None
) -> None:
    url = f"{host.url}/repo.git"
    given = RepositoryAccess(url, username=access[0], password=Secret(access[1])) if access else None
    with pytest.raises(SourceError, match="repository-write") as raised:
        writer(tmp_path, url, given).write(wanted(web="kind: W\n"))
    assert access is None or access[1] not in str(raised.value)
    assert "env/test" not in bare.run("branch", "--list", "env/*")


def test_credentials_for_reading_never_push(tmp_path: Path, bare: Bare, host: PushServer) -> None:
    url = f"{host.url}/repo.git"
    border = Border()
    may_write = RepositoryAccess(url, username="bot", password=Secret("wr1te-s3cret"))
    border.learn(CredentialStore(repositories=(may_write,), templates=(may_write,)))
    git = Git(GitSettings(tmp_path / "cache"), border)
    with pytest.raises(SourceError, match="repository-write"):
        git.writable(border.judge_writing(url, {"default"}), HydratedRepository).write(wanted(web="kind: W\n"))
    assert WRITER not in {given for given, _ in host.observed}


# -- signatures -------------------------------------------------------------------------------------------------------


def test_commits_and_their_beginning_are_signed_with_the_key_of_the_secret(tmp_path: Path, bare: Bare) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id")], check=True)
    access = RepositoryAccess(str(bare.path), signing_key=Secret((tmp_path / "id").read_text()))
    writer(tmp_path, str(bare.path), access).write(wanted(web="kind: W\n"))
    signers = tmp_path / "signers"
    signers.write_text("bot@example.com " + (tmp_path / "id.pub").read_text())
    asked = ("-c", f"gpg.ssh.allowedSignersFile={signers}", "log", "--format=%G?", "env/test")
    assert bare.run(*asked).split() == ["G", "G"]


def test_a_pgp_key_signs_too(tmp_path: Path, bare: Bare) -> None:
    home = {"GNUPGHOME": str(tmp_path / "gpg"), "PATH": "/usr/bin:/bin"}
    (tmp_path / "gpg").mkdir(mode=0o700)

    def gpg(*arguments: str) -> str:
        command = ["gpg", "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(command, env=home, check=True, capture_output=True, text=True).stdout

    gpg("--quick-generate-key", "bot@example.com", "ed25519", "sign", "never")
    access = RepositoryAccess(str(bare.path), signing_key=Secret(gpg("--armor", "--export-secret-keys")))
    writer(tmp_path, str(bare.path), access).write(wanted(web="kind: W\n"))
    command = ["git", "-C", str(bare.path), "log", "--format=%G?", "env/test"]
    shown = subprocess.run(command, env=home, check=True, capture_output=True, text=True).stdout
    subprocess.run(["gpgconf", "--kill", "all"], env=home, check=False)
    assert set(shown.split()) <= {"G", "U"} and len(shown.split()) == 2


@pytest.mark.parametrize("key", ["nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nbad\n-----END-----"])
def test_a_key_that_cannot_sign_stops_the_commit_and_is_not_shown(tmp_path: Path, bare: Bare, key: str) -> None:
    access = RepositoryAccess(str(bare.path), signing_key=Secret(key))
    with pytest.raises(SourceError) as raised:
        writer(tmp_path, str(bare.path), access).write(wanted(web="kind: W\n"))
    assert key not in str(raised.value)
    assert "env/test" not in bare.run("branch", "--list", "env/*")

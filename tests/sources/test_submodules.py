"""Repositories that mount others: what is read, what is refused, and whose credentials open them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from tests.sources.conftest import IDENTITY, Upstream
from tests.sources.githttp import Server
from tests.sources.repositories import render

from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.git.submodules import parse_modules, submodule_url
from syncline.sources.remote.credentials import credential_store
from syncline.sources.rendering.renderer import SourceSpec
from syncline.sources.tree import Tree

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def mount(parent: Upstream, child: Path | str, path: str, *, url: str = "") -> str:
    """``git submodule add``, with the address as people write it."""
    parent.run("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(child), path)
    if url:
        parent.run("config", "-f", ".gitmodules", f"submodule.{path}.url", url)
    return parent.commit({})


def texts(tree: Tree) -> dict[str, str]:
    files = [entry for entry in tree.entries if entry.is_file]
    return {path: body.decode() for path, body in tree.read(files).items()}


@pytest.fixture
def child(tmp_path: Path) -> Upstream:
    made = Upstream(tmp_path / "child")
    made.commit({"deploy/a.yaml": MAP % "a", "b.yaml": MAP % "b"})
    return made


@pytest.mark.parametrize("url", ["", "../child", "./../child"])
def test_files_of_a_submodule_are_files_of_the_repository(
    upstream: Upstream, child: Upstream, git: Git, url: str
) -> None:
    upstream.commit({"own.yaml": MAP % "own"})
    sha = mount(upstream, child.path, "vendor/child", url=url)
    repository = git.repository(str(upstream.path))
    assert texts(repository.tree(sha, "vendor")) == {"child/b.yaml": MAP % "b", "child/deploy/a.yaml": MAP % "a"}
    assert texts(repository.tree(sha, "vendor/child/deploy")) == {"a.yaml": MAP % "a"}
    assert texts(repository.tree(sha, "vendor/child/deploy").whole())["own.yaml"] == MAP % "own"
    spec = SourceSpec(str(upstream.path), "vendor/child", "main")
    assert [one["metadata"]["name"] for one in render(spec, repository).manifests] == ["b"]


def test_the_commit_that_is_pinned_is_read_and_a_commit_elsewhere_costs_nothing(
    upstream: Upstream, child: Upstream, git: Git
) -> None:
    sha = mount(upstream, child.path, "child")
    child.commit({"b.yaml": MAP % "later"})
    assert texts(git.repository(str(upstream.path)).tree(sha, "child"))["b.yaml"] == MAP % "b"


def test_submodules_lie_in_submodules_and_links_lead_through_them(
    upstream: Upstream, child: Upstream, git: Git, tmp_path: Path
) -> None:
    inner = Upstream(tmp_path / "inner")
    inner.commit({"deep.yaml": MAP % "deep"})
    mount(child, inner.path, "inner")
    mount(upstream, child.path, "child")
    (upstream.path / "app").mkdir()
    (upstream.path / "app" / "a.yaml").symlink_to("../child/deploy/a.yaml")
    (upstream.path / "app" / "out.yaml").symlink_to("../../x")
    sha = upstream.commit({})
    repository = git.repository(str(upstream.path))
    assert texts(repository.tree(sha, "child/inner")) == {"deep.yaml": MAP % "deep"}
    folder = repository.tree(sha, "app")
    links = {entry.path: entry for entry in folder.entries}
    target = folder.follow(links["a.yaml"])
    assert target is not None
    assert folder.read([target]) == {"a.yaml": (MAP % "a").encode()}
    with pytest.raises(SourceError, match=r"app/out\.yaml: the symbolic link leaves the repository"):
        folder.follow(links["out.yaml"])


def test_submodules_can_be_turned_off(upstream: Upstream, child: Upstream, tmp_path: Path) -> None:
    sha = mount(upstream, child.path, "child")
    git = Git(GitSettings(tmp_path / "plain", allow_local=True, submodules=False))
    assert [entry.path for entry in git.repository(str(upstream.path)).tree(sha).entries] == [".gitmodules", "child"]


def test_a_submodule_that_is_not_to_be_updated_is_left_out(upstream: Upstream, child: Upstream, git: Git) -> None:
    mount(upstream, child.path, "child")
    upstream.run("config", "-f", ".gitmodules", "submodule.child.update", "none")
    sha = upstream.commit({})
    assert [entry.path for entry in git.repository(str(upstream.path)).tree(sha).entries] == [".gitmodules", "child"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ext::/tmp/pwned", "names a transport helper"),
        ("-u/tmp/x", "is not an address of a repository"),
        ("git://example.org/x", "uses git://"),
        ("/nonexistent", "is not reachable"),
    ],
)
def test_what_a_submodule_names_is_checked_like_any_address(
    upstream: Upstream, child: Upstream, git: Git, url: str, words: str
) -> None:
    mount(upstream, child.path, "child")
    (upstream.path / ".gitmodules").write_text(f'[submodule "child"]\n\tpath = child\n\turl = "{url}"\n')
    sha = upstream.commit({})
    with pytest.raises(SourceError, match=words):
        git.repository(str(upstream.path)).tree(sha, "child")


def test_a_repository_elsewhere_mounts_nothing_of_this_machine(upstream: Upstream, child: Upstream, git: Git) -> None:
    sha = mount(upstream, child.path, "child")
    bare = upstream.path.parent / "served"
    subprocess.run(["git", *IDENTITY, "clone", "--quiet", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    server = Server(bare.parent, "")
    with pytest.raises(SourceError, match=r"submodule child: repository .* is a place on this machine"):
        git.repository(f"{server.url}/served").tree(sha, "child")
    server.close()


def test_a_submodule_of_the_same_host_is_opened_with_the_parents_credentials(
    upstream: Upstream, child: Upstream, git: Git, tmp_path: Path
) -> None:
    sha = mount(upstream, child.path, "child", url="../child.git")
    for name, source in (("parent", upstream.path), ("child", child.path)):
        bare = tmp_path / "host" / f"{name}.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(source), str(bare)], check=True)
        subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    server = Server(tmp_path / "host", "Basic " + base64.b64encode(b"me:pw").decode())
    url = f"{server.url}/parent.git"
    data = {"url": url, "username": "me", "password": "pw"}
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    git.learn(credential_store([{"metadata": {"name": "s", "labels": labels}, "data": encoded}], []))
    assert set(texts(git.repository(url).tree(sha, "child"))) == {"b.yaml", "deploy/a.yaml"}
    server.close()


@pytest.mark.parametrize(
    ("parent", "given", "expected"),
    [
        ("https://h/org/app.git", "../lib.git", "https://h/org/lib.git"),
        ("https://h/org/app/", "./sub", "https://h/org/app/sub"),
        ("https://h/org/app", "../../other/lib", "https://h/other/lib"),
        ("git@h:org/app.git", "../lib.git", "git@h:org/lib.git"),
        ("git@h:app.git", "../lib.git", "git@h:lib.git"),
        ("/srv/app", "../lib", "/srv/lib"),
        ("https://h/app", "https://o/x", "https://o/x"),
    ],
)
def test_relative_addresses_count_from_the_repository(parent: str, given: str, expected: str) -> None:
    assert submodule_url(parent, given) == expected


def test_relative_addresses_do_not_leave_the_host() -> None:
    with pytest.raises(SourceError, match="leaves the host"):
        submodule_url("https://h/app", "../../../evil.org/x")


def test_names_of_submodules_may_hold_dots() -> None:
    listing = b"submodule.a.b.path\nx/./y/\0submodule.a.b.url\nu\0core.bare\nfalse\0submodule.c.url\nv\0"
    assert parse_modules(listing) == {"x/y": "u"}

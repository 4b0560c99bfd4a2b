"""Repositories over real git: files, file:// and http, moving branches, hostile addresses and links."""

from __future__ import annotations

import contextlib
import functools
import gc
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Freshness, Git, GitSettings, check_url, normalize_url
from syncline.sources.git.process import Bounds, RemoteLimits
from syncline.sources.remote.requests import MAX_ADDRESSES, OTHERS, RemoteRequests


def files_at(git: Git, url: str, revision: str, path: str = "") -> dict[str, bytes]:
    repository = git.repository(url)
    tree = repository.tree(repository.resolve(revision), path)
    return tree.read(tree.entries)


def test_a_tree_is_read_at_a_commit_without_a_checkout(upstream: Any, git: Git) -> None:
    sha = upstream.commit({"app/a.yaml": "a: 1\n", "app/sub/b ü.yaml": "b\n", "other.txt": "x"})
    tree = git.repository(str(upstream.path)).tree(sha, "app")
    assert [(e.path, e.mode, e.size) for e in tree.entries] == [("a.yaml", "100644", 5), ("sub/b ü.yaml", "100644", 2)]
    assert tree.read(tree.entries) == {"a.yaml": b"a: 1\n", "sub/b ü.yaml": b"b\n"}
    assert not list(tree.read([]))


def test_a_commit_is_there_with_all_its_files_or_not_at_all(upstream: Any, git: Git, tmp_path: Path) -> None:
    """One who looks while another reader fetches must not find a commit whose folders are still to come: a fetch shows
    its objects together, as one pack, however few they are."""
    for number in range(2):
        sha = upstream.commit({f"app{number}/a.yaml": "a: 1\n"})
        git.repository(str(upstream.path)).tree(sha, f"app{number}")
    (objects,) = (tmp_path / "cache").glob("*.git/objects")
    assert len(list(objects.glob("pack/*.pack"))) == 2
    assert [one.name for one in objects.iterdir() if len(one.name) == 2] == []


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_branches_tags_and_commits_name_a_commit(upstream: Any, git: Git, form: str) -> None:
    first = upstream.commit({"a": "1"})
    upstream.run("tag", "-a", "v1.0.0", "-m", "annotated")
    upstream.run("branch", "release")
    second = upstream.commit({"a": "2"})
    repository = git.repository(form.format(upstream.path))
    for revision, sha, ref in [
        ("", second, "refs/heads/main"),
        ("HEAD", second, "refs/heads/main"),
        ("main", second, "refs/heads/main"),
        ("release", first, "refs/heads/release"),
        ("refs/heads/release", first, "refs/heads/release"),
        ("v1.0.0", first, "refs/tags/v1.0.0"),
        (first, first, ""),
        (first[:8], first, ""),
    ]:
        resolved = repository.resolve(revision)
        assert (revision, resolved.sha, resolved.ref) == (revision, sha, ref)


def test_behaviour_82_a_version_range_considers_tags_only(upstream: Any, git: Git) -> None:
    first = upstream.commit({"a": "1"})
    upstream.run("tag", "v1.8.0")
    upstream.commit({"a": "2"})
    upstream.run("branch", "1.9")
    assert git.repository(str(upstream.path)).resolve("1.*").sha == first


def test_behaviour_83_a_missing_full_commit_resolves_and_fails_when_it_is_read(upstream: Any, git: Git) -> None:
    upstream.commit({"a": "1"})
    repository = git.repository(str(upstream.path))
    resolved = repository.resolve("a" * 40)
    with pytest.raises(SourceError, match=f"unable to resolve '{'a' * 40}' to a commit SHA"):
        repository.tree(resolved)


def test_a_new_commit_is_seen_and_a_rewritten_branch_is_followed(upstream: Any, git: Git) -> None:
    first = upstream.commit({"a": "1"})
    repository = git.repository(str(upstream.path))
    before = repository.refs()
    assert before == repository.refs()
    assert files_at(git, str(upstream.path), "main") == {"a": b"1"}
    upstream.commit({"a": "2"})
    assert repository.refs() != before
    assert files_at(git, str(upstream.path), "main") == {"a": b"2"}
    upstream.run("reset", "--quiet", "--hard", first)
    rewritten = upstream.commit({"a": "3"})
    assert repository.resolve("main").sha == rewritten
    assert files_at(git, str(upstream.path), "main") == {"a": b"3"}


def test_a_branch_that_becomes_a_folder_of_branches_does_not_block_the_mirror(upstream: Any, git: Git) -> None:
    upstream.commit({"a": "1"})
    upstream.run("branch", "topic")
    assert files_at(git, str(upstream.path), "topic") == {"a": b"1"}
    upstream.run("branch", "-D", "topic")
    upstream.commit({"a": "2"})
    upstream.run("branch", "topic/y")
    assert files_at(git, str(upstream.path), "topic/y") == {"a": b"2"}


def test_a_reference_beside_branches_and_tags_is_brought_by_name(upstream: Any, git: Git) -> None:
    upstream.commit({"a": "1"})
    proposed = upstream.commit({"a": "pull"})
    upstream.run("update-ref", "refs/pull/7/head", proposed)
    upstream.run("reset", "--quiet", "--hard", "HEAD~1")
    assert files_at(git, str(upstream.path), "refs/pull/7/head") == {"a": b"pull"}


def test_a_commit_that_leaves_a_folder_alone_keeps_its_tree_id(upstream: Any, git: Git) -> None:
    repository = git.repository(str(upstream.path))
    first = repository.tree(upstream.commit({"app/a": "1", "b": "1"}), "app")
    second = repository.tree(upstream.commit({"b": "2"}), "app")
    third = repository.tree(upstream.commit({"app/a": "3"}), "app")
    assert first.id == second.id != third.id


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@contextlib.contextmanager
def serving(handler: Any) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def served(upstream: Any) -> Iterator[str]:
    with serving(functools.partial(QuietHandler, directory=str(upstream.path / ".git"))) as url:
        yield url


def test_a_repository_is_read_over_http(upstream: Any, git: Git, served: str) -> None:
    upstream.commit({"app/a": "1"})
    upstream.run("update-server-info")
    assert files_at(git, served, "main", "app") == {"a": b"1"}
    upstream.commit({"app/a": "2"})
    upstream.run("update-server-info")
    assert files_at(git, served, "main", "app") == {"a": b"2"}


class Backend(QuietHandler):
    """Smart http: every request is answered by ``git http-backend``."""

    root: Path

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        names = {"Content-Type": "CONTENT_TYPE", "Content-Encoding": "HTTP_CONTENT_ENCODING"}
        names["Git-Protocol"] = "HTTP_GIT_PROTOCOL"
        variables = {name: self.headers[header] for header, name in names.items() if header in self.headers}
        variables |= {"GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path}
        variables |= {"QUERY_STRING": query, "REQUEST_METHOD": self.command, "PATH": os.environ["PATH"]}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = subprocess.run(["git", "http-backend"], input=body, env=variables, capture_output=True).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET


def test_a_repository_is_read_over_smart_http_with_any_commit_it_still_holds(upstream: Any, git: Git) -> None:
    Backend.root = upstream.path
    upstream.run("config", "uploadpack.allowAnySHA1InWant", "true")
    with serving(Backend) as url:
        first = upstream.commit({"app/a": "1"})
        assert files_at(git, url + ".git", "main", "app") == {"a": b"1"}
        gone = upstream.commit({"app/a": "2"})
        upstream.run("reset", "--quiet", "--hard", first)
        upstream.commit({"app/a": "3"})
        assert files_at(git, url + ".git", "main", "app") == {"a": b"3"}
        assert files_at(git, url + ".git", gone, "app") == {"a": b"2"}


def test_credentials_in_an_address_are_masked_in_errors(git: Git, served: str) -> None:
    url = served.replace("127.0.0.1", "someone:s3cret@127.0.0.1") + "missing"
    with pytest.raises(SourceError) as caught:
        git.repository(url).resolve("main")
    assert "s3cret" not in str(caught.value) + caught.value.subject
    assert caught.value.problem is Problem.UNREACHABLE


def test_a_remote_address_mapped_by_the_git_configuration_is_read(
    upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = upstream.commit({"a": "1"})
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{upstream.path}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.example.com/org/repo")
    git = Git(GitSettings(tmp_path / "cache"))
    assert git.repository("https://git.example.com/org/repo").resolve("main").sha == sha
    assert files_at(git, "https://git.example.com/org/repo", "main") == {"a": b"1"}


def test_a_missing_repository_says_so(tmp_path: Path, git: Git) -> None:
    with pytest.raises(SourceError, match=r"is not reachable: .*does not") as caught:
        git.repository(str(tmp_path / "nowhere")).resolve("main")
    assert caught.value.problem is Problem.UNREACHABLE


def test_a_mirror_that_somebody_tidied_up_is_made_anew(tmp_path: Path, upstream: Any, git: Git) -> None:
    sha = upstream.commit({"app/a.yaml": "a: 1\n", "other/b.yaml": "b: 1\n"})
    repository = git.repository(str(upstream.path))
    tree = repository.tree(sha, "app")
    entries = tree.entries
    for mirror in (tmp_path / "cache").glob("*.git"):
        shutil.rmtree(mirror)
    with pytest.raises(SourceError, match=r"^mirror of .*: ") as caught:
        tree.read(entries)
    assert caught.value.problem is Problem.UNREACHABLE
    again = repository.tree(sha, "other")
    assert again.read(again.entries) == {"b.yaml": b"b: 1\n"}
    assert tree.read(entries) == {"a.yaml": b"a: 1\n"}


def test_a_missing_path_says_so_in_upstreams_words(upstream: Any, git: Git) -> None:
    sha = upstream.commit({"a/b": "1"})
    with pytest.raises(SourceError, match=r"^guestbook: app path does not exist$"):
        git.repository(str(upstream.path)).tree(sha, "guestbook")
    with pytest.raises(SourceError, match=r"^a/b: app path is not a directory$"):
        git.repository(str(upstream.path)).tree(sha, "a/b")


@pytest.mark.parametrize("revision", ["nope", "-v", "--upload-pack=touch x", "a\nb", "9.x", "x" * 2000, "deadbeef"])
def test_an_unknown_or_hostile_revision_is_refused(upstream: Any, git: Git, revision: str) -> None:
    upstream.commit({"a": "1"})
    with pytest.raises(SourceError) as caught:
        git.repository(str(upstream.path)).resolve(revision)
    assert caught.value.problem is Problem.REVISION_UNKNOWN


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc", "a\\b", "a\nb", "x" * 5000])
def test_a_path_that_could_leave_the_repository_is_refused(upstream: Any, git: Git, path: str) -> None:
    sha = upstream.commit({"a": "1"})
    with pytest.raises(SourceError, match=r"^Application path .* leaves the repository"):
        git.repository(str(upstream.path)).tree(sha, path)


@pytest.mark.parametrize(
    "url",
    [
        *("", "-u", "--upload-pack=x", "ext::sh -c x", "ext::x", "fd::7", "foo::bar", "::", "git://host/x", "ftp://h/x"),
        *("https:///x", "ssh://-oProxyCommand=x/y", "-oProxyCommand=x:y", "git@-oProxyCommand=x:y", "https://h/a b", "https://h/\n"),
    ],
)  # fmt: skip
def test_an_address_that_could_run_something_is_refused(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        check_url(url, allow_local=True)
    assert caught.value.problem is Problem.REFUSED


@pytest.mark.parametrize("url", ["/srv/x", "./x", "x", "file:///srv/x", "../x", "FILE:///x"])
def test_places_on_this_machine_need_permission(url: str) -> None:
    check_url(url, allow_local=True)
    with pytest.raises(SourceError, match="--allow-local-repos"):
        check_url(url, allow_local=False)


@pytest.mark.parametrize(
    "url",
    ["https://h/o/r", "http://h:80/r.git", "ssh://git@h/r", "git@h:o/r.git", "h:o/r", "https://u:p@h/r", "HTTPS://h/r"],
)
def test_remote_addresses_are_allowed_everywhere(url: str) -> None:
    check_url(url, allow_local=False)


def test_links_are_followed_inside_the_repository_and_refused_outside(upstream: Any, git: Git) -> None:
    upstream.commit({"app/a.yaml": "a", "shared/s.yaml": "shared"})
    targets = {"in": "a.yaml", "up": "../shared/s.yaml", "folder": "../shared", "out": "../../x", "root": "/etc/passwd"}
    targets |= {"dangling": "nothing", "loop": "loop"}
    for name, target in targets.items():
        os.symlink(target, upstream.path / "app" / name)
    tree = git.repository(str(upstream.path)).tree(upstream.commit({}), "app")
    links = {entry.path: entry for entry in tree.entries if entry.is_symlink}
    assert set(links) == set(targets)
    found = [tree.follow(links[name]) for name in ("in", "up")]
    assert tree.read([entry for entry in found if entry]) == {"in": b"a", "up": b"shared"}
    assert tree.follow(links["folder"]) is None
    assert tree.follow(links["dangling"]) is None, "as upstream: it is passed over"
    for name, ending in [("out", "leaves"), ("root", "leaves"), ("loop", "does not end")]:
        with pytest.raises(SourceError, match=f"app/{name}: the symbolic link {ending}"):
            tree.follow(links[name])


def test_a_name_that_is_no_utf8_and_a_link_with_a_line_break_do_no_harm(upstream: Any, git: Git) -> None:
    (upstream.path / "app").mkdir()
    Path(os.fsdecode(os.fsencode(upstream.path / "app") + b"/\xff.yaml")).write_text("x")
    (upstream.path / "app" / "a\nb.yaml").symlink_to("a")
    tree = git.repository(str(upstream.path)).tree(upstream.commit({"app/a": "secret"}), "app")
    assert [entry.path for entry in tree.entries] == ["\\xff.yaml", "a", "a\nb.yaml"]
    assert tree.follow(tree.entries[2]) is None


def test_a_remote_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    git = Git(GitSettings(tmp_path / "cache", limits=RemoteLimits(listing=Bounds(0.3))))
    try:
        with pytest.raises(SourceError, match=r"no answer within 0\.3 seconds"):
            git.repository(f"http://127.0.0.1:{server.server_address[1]}/x").resolve("main")
    finally:
        server.server_close()


RECORDED = CONFORMANCE / "gitops" / "glob.jsonl"


@pytest.mark.skipif(not RECORDED.exists(), reason=absent(RECORDED))
def test_addresses_are_normalised_as_recorded() -> None:
    cases = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    observed = [case for case in cases if case["input"]["matcher"] == "git-url"]
    for case in observed:
        first, second = (normalize_url(case["input"][name]) for name in ("pattern", "text"))
        assert {"id": case["id"], "normalized": first, "same": first == second} == {"id": case["id"], **case["expect"]}
    assert observed


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def looks(git: Git) -> int:
    return sum(count for _, command, _, count in git.requests() if command == "ls-remote")


def test_one_look_at_a_remote_serves_all_that_are_content_with_its_moment(upstream: Any, git: Git) -> None:
    upstream.commit({"a": "1"})
    repository = git.repository(str(upstream.path))
    first = repository.resolve("main", freshness=Freshness(NOON))
    second = upstream.commit({"a": "2"})
    half_a_minute = Freshness(NOON + timedelta(seconds=20), NOON - timedelta(seconds=10))
    assert repository.resolve("main", freshness=half_a_minute).sha == first.sha
    assert looks(git) == 1
    later = Freshness(NOON + timedelta(seconds=40), NOON + timedelta(seconds=10))
    assert repository.resolve("main", freshness=later).sha == second
    assert looks(git) == 2


def test_who_asks_for_news_never_gets_an_answer_from_before(upstream: Any, git: Git) -> None:
    upstream.commit({"a": "1"})
    repository = git.repository(str(upstream.path))
    repository.resolve("main", freshness=Freshness(NOON))
    second = upstream.commit({"a": "2"})
    assert repository.resolve("main", freshness=Freshness(NOON)).sha == second, (
        "at the same instant, but asked after the push"
    )


def test_a_remote_that_does_not_answer_is_asked_once_for_all(upstream: Any, git: Git, tmp_path: Path) -> None:
    repository = git.repository(str(tmp_path / "nowhere"))
    for _ in range(3):
        with pytest.raises(SourceError, match="not reachable"):
            repository.resolve("main", freshness=Freshness(NOON, NOON))
    assert looks(git) == 1


def test_a_folder_that_becomes_a_file_is_refused_although_it_was_remembered(upstream: Any, git: Git) -> None:
    repository = git.repository(str(upstream.path))
    repository.tree(upstream.commit({"app/a": "1"}), "app")
    (upstream.path / "app" / "a").unlink()
    (upstream.path / "app").rmdir()
    with pytest.raises(SourceError, match="app path is not a directory"):
        repository.tree(upstream.commit({"app": "now a file"}), "app")


def test_of_remotes_only_so_many_are_remembered_beside_those_in_use(tmp_path: Path) -> None:
    git = Git(GitSettings(tmp_path / "cache", remembered=10))
    used = git.repository("https://example.com/used.git")
    for number in range(100):
        git.repository(f"https://example.com/{number}.git")
    gc.collect()
    assert git.remembered == 11
    again = git.repository("https://example.com/used.git")
    assert again._lock is used._lock, "one place on disk has one lock"


def test_calls_of_remotes_are_counted_by_so_many_addresses() -> None:
    requests = RemoteRequests()
    for number in range(MAX_ADDRESSES + 10):
        requests.note(f"https://example.com/{number}.git", "fetch", True)
    requests.note("https://example.com/0.git", "fetch", True)
    counts = {address: count for address, _, _, count in requests.listed()}
    assert len(counts) == MAX_ADDRESSES + 1
    assert counts[OTHERS] == 10 and counts["https://example.com/0.git"] == 2

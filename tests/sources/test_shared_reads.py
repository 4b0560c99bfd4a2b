"""What many Applications of one repository cost together: questions to the host, git processes, files for ssh."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.secret import Secret
from syncline.gitops.application.manifests import Manifests, ManifestStore, Render, RenderHandler
from syncline.kube.objects import Obj
from syncline.sources.git import access as git_access
from syncline.sources.git.access import git_environment
from syncline.sources.git.tree import AHEAD_FILES
from syncline.sources.remote.credentials import CredentialStore, RepositoryAccess
from syncline.sources.remote.listing import Listing
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.tree import Entry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 40
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{v: '{value}'}}\n"


class Still:
    """A clock that stands still, as it does in the moment in which many are asked for."""

    def now(self) -> datetime:
        return NOW


def folders(upstream: Any, value: str, *, some: int = MANY) -> None:
    upstream.commit(
        {
            f"apps/{number}/{part}.yaml": MAP.format(name=f"{number}-{part}", value=value)
            for number in range(some)
            for part in "ab"
        }
    )


def source(upstream: Any, number: int) -> Obj:
    return {"repoURL": str(upstream.path), "path": f"apps/{number}"}


def render(upstream: Any, number: int, *, asked: bool) -> Render:
    context = RenderContext(f"app-{number}", "default", "ns")
    return Render(f"app-{number}", (source(upstream, number),), ("HEAD",), "a test", context=context, asked=asked)


def asked_for(handler: RenderHandler, upstream: Any, *, asked: bool) -> list[Callable[[], Manifests]]:
    """All are asked for before the first of them is read."""
    return [next(handler.handle(render(upstream, number, asked=asked))).run for number in range(MANY)]


def looks(reader: GitSourceReader) -> int:
    return sum(count for _, command, _, count in reader.requests() if command == "ls-remote")


@pytest.mark.parametrize("asked", [True, False], ids=["refreshes", "first renders"])
def test_one_question_to_the_host_serves_all_that_were_asked_for_before_it(
    upstream: Any, tmp_path: Path, asked: bool
) -> None:
    folders(upstream, "1")
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    handler = RenderHandler(reader, ManifestStore(), Still())
    found = [read() for read in asked_for(handler, upstream, asked=asked)]
    assert [len(one.objects) for one in found] == [2] * MANY
    assert looks(reader) == 1


def test_what_is_asked_for_after_a_commit_hears_of_it_although_clocks_stand_still(
    upstream: Any, tmp_path: Path
) -> None:
    folders(upstream, "1")
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    handler = RenderHandler(reader, ManifestStore(), Still())
    before = asked_for(handler, upstream, asked=True)
    before[0]()
    folders(upstream, "2")
    after = asked_for(handler, upstream, asked=True)
    values = {one.objects[0]["data"]["v"] for one in (read() for read in after)}
    assert (values, looks(reader)) == ({"2"}, 2)


def test_a_live_reader_leaves_a_moment_between_two_questions_to_a_host(upstream: Any, tmp_path: Path) -> None:
    folders(upstream, "1", some=1)
    apart = 0.05
    reader = GitSourceReader(tmp_path / "cache", allow_local=True, looks_apart_s=apart)
    began = time.monotonic()
    for _ in range(6):
        reader.read((source(upstream, 0),), ("HEAD",), NOW)
    assert looks(reader) <= 2 + (time.monotonic() - began) / apart


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The git commands that were run, by a git that writes them down."""
    place, log, real = tmp_path / "bin", tmp_path / "commands", shutil.which("git")
    place.mkdir()
    (place / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    (place / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=":")
    return lambda: log.read_text().splitlines()


def test_a_cold_start_reads_the_folders_of_a_commit_together(
    upstream: Any, tmp_path: Path, commands: Callable[[], list[str]]
) -> None:
    folders(upstream, "1")
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    for number in range(MANY):
        at = NOW + timedelta(seconds=number)
        found = reader.poll(
            (source(upstream, number),), ("HEAD",), at, RenderContext(f"a{number}", "default", "ns"), since=NOW
        )
        assert [one["metadata"]["name"] for one in found.objects] == [f"{number}-a", f"{number}-b"], found.error
    read = [line for line in commands() if line.endswith("cat-file --batch")]
    assert len(read) <= 5, read
    assert len([line for line in commands() if "cat-file -e" in line]) <= 2


def test_what_is_read_ahead_is_bounded_and_no_file_is_read_ahead_twice() -> None:
    listing = Listing("a" * 40, [Entry(f"{number:05}", "100644", f"{number:040}", 10) for number in range(20_000)])
    limits = {"each": 100, "together": 10_000, "files": AHEAD_FILES}
    first = [entry.path for entry in listing.ahead("00100", **limits)]
    assert (first[0], len(first)) == ("00100", 1000)
    assert next(entry.path for entry in listing.ahead("00100", **limits)) == "01100"
    large = Listing("b" * 40, [Entry("large", "100644", "c", 101), Entry("link", "120000", "d", 1)])
    assert list(large.ahead("", **limits)) == []


@pytest.mark.parametrize("url", ["file:///srv/repo", "/srv/repo", "https://git.example.com/repo"])
def test_no_environment_for_ssh_is_made_for_a_place_on_this_machine_or_http(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_access, "credentials_folder", lambda: tmp_path)
    access = CredentialStore(known_hosts="git.example.com ssh-ed25519 AAAA").access(url)
    with git_environment(access) as values:
        assert "GIT_SSH_COMMAND" not in values
        assert list(tmp_path.iterdir()) == []


def test_files_for_ssh_are_there_for_one_call_and_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_access, "credentials_folder", lambda: tmp_path)
    access = RepositoryAccess("git@git.example.com:repo", ssh_key=Secret("key"), known_hosts="hosts")
    with git_environment(access) as values:
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        assert [path.name for path in files] == ["key", "known_hosts"]
        assert all(path.stat().st_mode & 0o777 == 0o600 and str(path) in values["GIT_SSH_COMMAND"] for path in files)
    assert list(tmp_path.iterdir()) == []

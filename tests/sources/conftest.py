"""Real git repositories for the tests of this room."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from syncline.sources.git.mirrors import Git, GitSettings

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")


class Upstream:
    """A repository that people push to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run("init", "--quiet", str(path), inside=False)

    def run(self, *arguments: str, inside: bool = True) -> str:
        place = ["-C", str(self.path)] if inside else []
        return subprocess.run(
            ["git", *IDENTITY, *place, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        self.run("add", "-A")
        self.run("commit", "--quiet", "--allow-empty", "-m", message)
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(GitSettings(tmp_path / "cache", allow_local=True))

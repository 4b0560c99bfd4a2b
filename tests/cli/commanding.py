"""The command line as people use it, and repositories for it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from syncline.cli.main import main


class Repository:
    """A working tree with a commit for each change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._git("init", "-q", "-b", "main")

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.folder / f"{name}.yaml").write_text(text)
        self._git("add", ".")
        self._git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "change")
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()


@dataclass
class Shell:
    """The command line as people use it; remembers everything it printed."""

    capture: pytest.CaptureFixture[str]
    printed: list[str]

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self.capture.readouterr()
        ended = main(list(arguments))
        out, err = self.capture.readouterr()
        self.printed += [out, err]
        assert ended == code, f"{arguments} ended with {ended}\n{out}{err}"
        return out if code == 0 else out + err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

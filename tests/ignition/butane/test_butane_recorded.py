"""The ``butane`` command against 448 recorded runs of Butane 0.29: exit code, output, files and reports."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.ignition.recordings import cases, judge, raw_input

from syncline.cli.files.butane import butane


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)


def _lay_out(files: list[dict[str, Any]]) -> None:
    for file in files:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.get("dir"):
            path.mkdir(exist_ok=True)
        elif "symlink" in file:
            path.symlink_to(file["symlink"])
            continue
        elif file.get("fifo"):
            os.mkfifo(path)
            continue
        else:
            path.write_bytes(base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode())
        path.chmod(int(file.get("mode", "0755" if file.get("dir") else "0644"), 8))


def _entries(stderr: str, *, raw: bool) -> tuple[list[str], str]:
    match = re.search(r"(?m)^(Error translating config: |Config produced warnings and |failed to )", stderr)
    body, tail = (stderr[: match.start()], stderr[match.start() :]) if match else (stderr, "")
    parts = body.split("\n") if raw else re.split(r"\n\n", body)
    return sorted(part.strip("\n") for part in parts if part.strip("\n")), tail


def _without_name(text: str) -> str:
    return text.replace("Usage: syncline butane ", "Usage: butane ")


def _same_stderr(match: str, got: str, expect: str, *, raw: bool) -> bool:
    """Stricter than asked: where only a likeness is wanted, ours is the very same text but for the program's name."""
    if match == "unordered":
        return _entries(got, raw=raw) == _entries(expect, raw=raw)
    if expect.startswith("Usage: "):  # ours lists two flags more
        return sorted({*expect.splitlines(), *_OURS}) == sorted(_without_name(got).splitlines())
    return _without_name(got) == expect


_OURS = (
    "      --hints                     also tell what butane does not: contents and texts that will surprise",
    "      --safe-yaml                 write MachineConfigs as kubectl does, which keeps every text and number",
)


def _run(case: dict[str, Any], *more: str) -> tuple[int, str, str]:
    given = b"" if case["input"] is None and "input_base64" not in case else raw_input(case)
    result = CliRunner().invoke(butane, [*case["args"], *more], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    stderr = result.stderr_bytes.decode("utf-8", "surrogateescape") if result.stderr_bytes else ""
    return result.exit_code, result.stdout_bytes.decode(), stderr


def _expected_stderr(expect: dict[str, Any]) -> str:
    if "stderr_base64" in expect:
        return base64.b64decode(expect["stderr_base64"]).decode("utf-8", "surrogateescape")
    return str(expect["stderr"])


@pytest.mark.parametrize("case", cases("ignition", "butane"), ids=lambda case: case["id"])
def test_the_command_does_what_butane_does(case: dict[str, Any]) -> None:
    expect = case["expect"]
    _lay_out(case.get("files") or [])
    code, stdout, stderr = _run(case)
    raw = "--raw-errors" in case["args"]
    outputs = {path: Path(path).read_text() if Path(path).exists() else None for path in expect.get("outputs", {})}
    agrees = (
        code == expect["exit"]
        and stdout == expect["stdout"]
        and outputs == expect.get("outputs", {})
        and _same_stderr(expect["stderr_match"], stderr, _expected_stderr(expect), raw=raw)
    )
    judge(case, agrees, (code, stdout, stderr))
    if "stderr_raw" in expect:
        _, _, stderr = _run(case, "--raw-errors")
        judge(case, _same_stderr(expect["stderr_match"], stderr, expect["stderr_raw"], raw=True), stderr)

"""Locked packages: each has a reason in docs/dependencies.md, a hash, and no address."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> dict[str, str]:
    return {canonical(name): version for name, version in PIN.findall((ROOT / lock).read_text())}


def asked(*extras: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return {canonical(re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0]) for line in lines}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_its_reason_in_the_docs(lock: str) -> None:
    words = {canonical(word) for word in re.findall(r"[A-Za-z0-9._-]+", (ROOT / "docs/dependencies.md").read_text())}
    assert sorted(set(locked(lock)) - words) == []


def test_the_locks_hold_what_the_project_asks_for() -> None:
    assert sorted(asked("speed", "local", "jsonnet", "lua") - set(locked(LOCKS[0]))) == []
    assert sorted(asked("speed", "local", "jsonnet", "lua", "helm", "ansible", "dev") - set(locked(LOCKS[1]))) == []


def test_both_locks_name_the_same_versions() -> None:
    run, work = (locked(lock) for lock in LOCKS)
    assert {name: (version, work.get(name)) for name, version in run.items() if work.get(name) != version} == {}


def test_helm_is_installed_by_its_pin() -> None:
    spec = importlib.util.spec_from_file_location("run", ROOT / "run.py")
    assert spec is not None and spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    pin = run.pin_of("helm-python-sdk", LOCKS[1]).splitlines()
    assert pin[0].startswith("helm-python-sdk==") and len(pin) > 1
    assert all("--hash=sha256:" in line for line in pin[1:])


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash_and_no_address_stands_in_a_lock(lock: str) -> None:
    text = (ROOT / lock).read_text()
    pins = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    assert [pin.splitlines()[0] for pin in pins if pin.strip() and "--hash=sha256:" not in pin] == []
    assert "://" not in text and "index-url" not in text

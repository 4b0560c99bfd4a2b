"""The suite about itself: where recordings are found, what is said of those that are not, marks, its own sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests import marks, recorded

ROOT = Path(__file__).resolve().parents[2]


def test_recordings_are_found_beside_the_repository_and_beside_the_checkout_of_a_worktree(tmp_path: Path) -> None:
    main, tree = tmp_path / "a" / "main", tmp_path / "b" / "tree"
    kept = tmp_path / "a" / "shared" / "conformance"
    for folder in (main / ".git" / "worktrees" / "tree", tree, kept):
        folder.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    assert recorded.shared("SYNCLINE_UNSET", "conformance", main) == kept
    assert recorded.shared("SYNCLINE_UNSET", "conformance", tree) == kept
    (tmp_path / "b" / "shared" / "conformance").mkdir(parents=True)
    assert recorded.shared("SYNCLINE_UNSET", "conformance", tree) == tmp_path / "b" / "shared" / "conformance"


def test_the_environment_names_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNCLINE_CONFORMANCE", str(tmp_path))
    assert recorded.shared("SYNCLINE_CONFORMANCE", "conformance") == tmp_path


def test_a_test_without_its_recording_is_skipped_with_the_file_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no recordings at .*/gitops/nothing\.jsonl: SYNCLINE_CONFORMANCE"):
        recorded.cases_of("gitops", "nothing")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert recorded.cases_of("gitops", "nothing") == [], "while tests are collected"


def test_no_other_module_looks_for_recordings() -> None:
    names = ("SYNCLINE_" + "CONFORMANCE", "SYNCLINE_" + "SCENES")
    mine = {ROOT / "tests" / "recorded.py", Path(__file__)}
    found = [path for path in (ROOT / "tests").rglob("*.py") if any(name in path.read_text() for name in names)]
    assert sorted(set(found) - mine) == []


def test_marks_follow_from_what_a_test_uses(request: pytest.FixtureRequest) -> None:
    import tests.clients.kubectl
    import tests.cluster.machines.test_exec
    import tests.cluster.test_disk_full  # noqa: F401

    assert marks.marks_of("tests.cluster.machines.test_exec") == {"live", "process"}
    assert "clients" in marks.marks_of("tests.clients.kubectl")
    assert "faults" in marks.marks_of("tests.cluster.test_disk_full")
    registered = {line.partition(":")[0] for line in request.config.getini("markers")}
    assert set(marks.ANYWHERE) | set(marks.HERE) | set(marks.PLACES) <= registered


def test_processes_that_tests_start_import_the_sources_beside_them_and_compile_once() -> None:
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT / "src")
    assert not sys.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" not in os.environ

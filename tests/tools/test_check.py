"""``run.py check``: which tests a change reaches and which of them fit, as tables; and the command from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.check import Chosen, choose, graph_of, is_test, reached, room_named, rooms_of, touched

ROOT = Path(__file__).resolve().parents[2]

HOUSE = {
    "src/syncline/base/__init__.py": "",
    "src/syncline/base/clock.py": "",
    "src/syncline/kube/objects.py": "from syncline.base import clock\n",
    "src/syncline/kube/client.py": "from syncline.kube.objects import (\n    Obj,\n)\n",
    "src/syncline/cli/main.py": "def main():\n    from syncline.kube import client\n",
    "tests/conftest.py": "",
    "tests/base/test_clock.py": "import syncline.base.clock\n",
    "tests/kube/conftest.py": "from syncline.kube.client import Client\n",
    "tests/kube/test_objects.py": "from syncline.kube.objects import Obj\n",
    "tests/kube/test_parts.py": "'data: tests/kube/known.json'\n",
    "tests/cli/test_main.py": 'CODE = "import sys; from syncline.cli.main import main; sys.exit(main())"\n',
    "tests/style/test_docs.py": "'docs/map.md'\n",
}
BY_CHANGE = {
    "a module reaches tests that import what imports it": (
        "src/syncline/kube/client.py",
        {"tests/cli/test_main.py", "tests/kube/test_objects.py", "tests/kube/test_parts.py"},
    ),
    "the ground floor reaches everything above it": (
        "src/syncline/base/clock.py",
        {
            "tests/base/test_clock.py",
            "tests/kube/test_objects.py",
            "tests/kube/test_parts.py",
            "tests/cli/test_main.py",
        },
    ),
    "a program in a string is an import": ("src/syncline/cli/main.py", {"tests/cli/test_main.py"}),
    "fixtures of a folder reach its tests": (
        "tests/kube/conftest.py",
        {"tests/kube/test_objects.py", "tests/kube/test_parts.py"},
    ),
    "data of a package reaches what its modules reach": (
        "src/syncline/cli/words.json",
        {"tests/cli/test_main.py"},
    ),
    "a document reaches the tests that name it": ("docs/map.md", {"tests/style/test_docs.py"}),
    "a file that nothing names reaches nothing": ("docs/other.svg", set()),
}


@pytest.mark.parametrize(("changed", "tests"), BY_CHANGE.values(), ids=BY_CHANGE)
def test_a_change_reaches_the_tests_that_could_see_it(changed: str, tests: set[str]) -> None:
    steps = reached(graph_of(HOUSE), touched(changed, HOUSE))
    assert {path for path in steps if is_test(path)} == tests


def test_the_nearest_come_first() -> None:
    steps = reached(graph_of(HOUSE), {"src/syncline/kube/objects.py"})
    assert (steps["src/syncline/kube/client.py"], steps["src/syncline/cli/main.py"]) == (1, 2)
    assert (steps["tests/kube/test_objects.py"], steps["tests/cli/test_main.py"]) == (1, 3)


STEPS = {
    "tests/style/test_house.py": 0,
    "tests/cli/test_far.py": 3,
    "tests/kube/cel/test_own.py": 4,
    "tests/kube/test_slow.py": 1,
    "tests/gitops/test_near.py": 1,
}
COSTS = {"tests/style/test_house.py": 5.0, "tests/kube/test_slow.py": 50.0}


@pytest.mark.parametrize(
    ("budget_s", "run", "left"),
    [
        (100.0, ("style/test_house", "kube/test_slow", "kube/cel/test_own", "gitops/test_near", "cli/test_far"), ()),
        (20.0, ("style/test_house", "kube/cel/test_own", "gitops/test_near", "cli/test_far"), ("kube/test_slow",)),
        (7.0, ("style/test_house", "kube/cel/test_own", "gitops/test_near"), ("kube/test_slow", "cli/test_far")),
        (0.0, ("style/test_house",), ("kube/test_slow", "kube/cel/test_own", "gitops/test_near", "cli/test_far")),
    ],
    ids=["all fits", "one is too long", "the nearest fit", "rules always run"],
)
def test_the_rooms_own_tests_come_first_and_what_does_not_fit_is_left(
    budget_s: float, run: tuple[str, ...], left: tuple[str, ...]
) -> None:
    def named(tests: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"tests/{test}.py" for test in tests)

    assert choose(STEPS, {"src/syncline/kube/a.py"}, COSTS, budget_s) == Chosen(named(run), named(left))


@pytest.mark.parametrize(
    ("given", "room"),
    [("kube", "kube"), ("src/syncline/kube/", "kube"), ("./tests/cli", "cli"), ("cli", "cli")],
)
def test_a_room_is_named_by_its_folder(given: str, room: str) -> None:
    assert room_named(given, rooms_of(HOUSE)) == room


@pytest.mark.parametrize(
    ("given", "hint"),
    [("kub", "did you mean kube? "), ("zzz", "folders of src/syncline and tests: base, cli")],
)
def test_a_room_that_is_not_there_is_refused_with_those_that_are(given: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"no room is named '{given}': ") as refused:
        room_named(given, rooms_of(HOUSE))
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("check", "gitop"), 2, "no room is named 'gitop': did you mean gitops"),
        (("check", "--help"), 0, "python3 run.py check kube"),
        (("chek",), 2, "no command is named 'chek': did you mean 'check'?"),
        ((), 0, "check [ROOM]"),
    ],
    ids=["unknown room", "help of check", "unknown command", "help"],
)
def test_the_command_answers_from_any_folder_before_it_installs_anything(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    environment = ROOT / ".venv"
    before = environment.exists()
    done = subprocess.run([sys.executable, ROOT / "run.py", *words], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done
    assert (environment.exists(), os.listdir(tmp_path)) == (before, [])


def test_what_it_runs_sees_the_callers_folder_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setenv("PYTHONPATH", "/of/the/caller")
    assert run.execute("sh", "-c", "echo $PATH $PYTHONPATH; pwd") == 0
    assert capfd.readouterr().out == f"/bin:/usr/bin /of/the/caller\n{tmp_path}\n"

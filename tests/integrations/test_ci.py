"""The GitHub Action and the GitLab template: their scripts run in bash, as runners do, on a real Git repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integrations.preloaded import preloaded

from syncline.rehearsal.repository import IDENTITY

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "integrations/github/action.yml").read_text())
TEMPLATE = yaml.safe_load((ROOT / "integrations/gitlab/syncline.gitlab-ci.yml").read_text())
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {sky: blue}\n"
SCENARIO = """\
# +argocd:skip-file-rendering
scenarios:
- name: blue
  application: shop
  world: world.yaml
  expect: [{object: ConfigMap/colours, is: {data.sky: blue}}]
"""
RECORDS = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
if [ "$1" = --silent ]; then cat > "$CALLS.stdin"; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
"""
"""A program that notes how it was called, ``curl`` also its configuration; it is in environments that it makes."""
MODULES = ("syncline.cli.rehearse.command", "syncline.cli.rehearse.testing", "syncline.cli.views.rehearsal.picture")
pytestmark = pytest.mark.process


@dataclass
class Runner:
    """A machine that runs scripts: a checkout with a branch ``main`` and a change, and stubs of programs of others."""

    place: Path
    program: Path

    @property
    def checkout(self) -> Path:
        return self.place / "checkout"

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.checkout), *IDENTITY, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()

    def prepare(self) -> None:
        self.checkout.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (self.checkout / "map.yaml").write_text(MAP % "colours")
        (self.checkout / "world.yaml").write_text("nodes: [{name: node}]\n")
        (self.checkout / "shop.rehearsal.yaml").write_text(SCENARIO)
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.git("checkout", "-qb", "change")
        (self.place / "bin").mkdir()
        for name in ("gh", "curl", "python3"):
            (self.place / "bin" / name).write_text(RECORDS)
            (self.place / "bin" / name).chmod(0o755)
        (self.place / "bin" / "syncline").symlink_to(self.program)

    def change(self, path: str, text: str) -> None:
        (self.checkout / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", f"change {path}")

    def run(self, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script as the runners do: bash, ended by the first command that fails."""
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.place), "CALLS": str(self.place / "calls"), **variables}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=600)

    def calls(self) -> str:
        return (self.place / "calls").read_text() if (self.place / "calls").exists() else ""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with preloaded(tmp_path_factory.mktemp("program"), MODULES) as found:
        yield found


@pytest.fixture
def runner(tmp_path: Path, program: Path) -> Runner:
    made = Runner(tmp_path, program)
    made.prepare()
    return made


# -- GitHub ------------------------------------------------------------------------------------------------------------


def acted(runner: Runner, inputs: Mapping[str, str]) -> tuple[int, str]:
    """Run the steps of the composite action; return the exit code of the last that fails, and the summary."""
    temp = runner.place / "temp"
    temp.mkdir(exist_ok=True)
    files = {name: temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
    defaults = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
    known = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
    known |= {"github.repository": "example/shop", "github.event.pull_request.number": "7"}
    failed = 0
    for step in ACTION["runs"]["steps"]:
        if not _applies(str(step.get("if", "")), known, failed=bool(failed)):
            continue
        assert "${{" not in step["run"], "an expression in a script would let a branch name run commands"
        files["GITHUB_OUTPUT"].write_text("")
        variables = {key: _filled(str(value), known) for key, value in step.get("env", {}).items()}
        done = runner.run(step["run"], variables | {"RUNNER_TEMP": str(temp)} | {k: str(v) for k, v in files.items()})
        failed = done.returncode or failed
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value
    return failed, files["GITHUB_STEP_SUMMARY"].read_text()


def _applies(condition: str, known: Mapping[str, str], *, failed: bool) -> bool:
    """Evaluate the few forms of conditions that the action has."""
    parts = [part.strip() for part in condition.split("&&") if part.strip()]
    if "always()" not in parts and failed:
        return False
    for part in [part for part in parts if part != "always()"]:
        name, operator, wanted = re.fullmatch(r"([\w.]+)(?: (==|!=) '(.*)')?", part).groups()  # type: ignore[union-attr]
        value = known.get(name, "")
        if not (value != wanted if operator == "!=" else value == wanted if operator else bool(value)):
            return False
    return True


def _filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known.get(found[1], ""), text)


def test_the_action_passes_a_safe_change_and_comments_on_it(runner: Runner) -> None:
    runner.change("other.yaml", MAP % "other")
    inputs = {"base": "main", "world": "world.yaml", "comment": "true", "token": "none"}
    code, summary = acted(runner, inputs)
    assert code == 0, summary
    assert summary.startswith("## ✅ Rehearsal safe") and "## ✅ Scenarios: 1 passed" in summary
    venv, pip, comment = runner.calls().splitlines()
    assert venv.startswith("python3 -m venv ")
    assert comment == f"gh pr comment 7 --edit-last --create-if-none --body-file {runner.place / 'temp' / 'comment.md'}"
    assert pip == "python -m pip install --quiet syncline"
    assert '<testsuite name="syncline test" tests="1"' in (runner.place / "temp" / "syncline-test.xml").read_text()


def test_the_action_fails_what_breaks_a_scenario_or_its_base(runner: Runner) -> None:
    runner.change("map.yaml", (MAP % "colours").replace("blue", "red"))
    inputs = {"base": "main", "rehearse": "false", "package": ""}
    code, summary = acted(runner, inputs)
    assert code == 1 and "## ❌ Scenarios: 1 failed" in summary and "data.sky is 'red', not 'blue'" in summary
    assert runner.calls() == "", "nothing is installed, and no comment is written"
    runner.change("shop.rehearsal.yaml", "scenarios: []\n")
    code, _ = acted(runner, inputs)
    assert code == 2
    (runner.checkout / "shop.rehearsal.yaml").unlink()
    for base in ("--output=x", "none; touch ran"):
        code, _ = acted(runner, inputs | {"rehearse": "true", "base": base})
        assert code == 2 and not (runner.checkout / "ran").exists()


# -- GitLab ------------------------------------------------------------------------------------------------------------


def job(runner: Runner, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the job of the template as its runner does: before_script and script in one shell."""
    made: dict[str, Any] = TEMPLATE[".syncline"]
    script = "\n".join([*made["before_script"], *made["script"]])
    return runner.run(script, {key: str(value) for key, value in made["variables"].items()} | variables)


def test_the_template_tests_rehearses_and_notes_what_it_found(runner: Runner) -> None:
    runner.change("map.yaml", (MAP % "Not_A_Name"))
    merge = {"CI_API_V4_URL": "https://gitlab.example/api/v4", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "9"}
    base = runner.git("rev-parse", "main")
    done = job(
        runner, SYNCLINE_WORLD="world.yaml", SYNCLINE_TOKEN="s3cret", CI_MERGE_REQUEST_DIFF_BASE_SHA=base, **merge
    )
    assert done.returncode == 1, done.stderr
    assert "## ❌ Rehearsal failed" in done.stdout and "## ❌ Scenarios: 1 failed" in done.stdout
    install, note = runner.calls().splitlines()
    assert install == "python3 -m pip install --quiet syncline"
    assert note.startswith("curl --silent") and note.endswith("/projects/3/merge_requests/9/notes")
    assert "s3cret" not in runner.calls() + done.stdout + done.stderr
    assert (runner.place / "calls.stdin").read_text() == 'header = "PRIVATE-TOKEN: s3cret"\n'
    assert (runner.checkout / ".syncline" / "test.xml").exists()


def test_the_template_needs_neither_scenarios_nor_a_merge_request(runner: Runner) -> None:
    (runner.checkout / "shop.rehearsal.yaml").unlink()
    done = job(runner, SYNCLINE_PACKAGE="", SYNCLINE_REHEARSE="false")
    assert done.returncode == 0, done.stderr
    assert runner.calls() == ""

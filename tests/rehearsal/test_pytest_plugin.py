"""pytest collects scenarios, and laws in Python come from the caller's machine alone."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from syncline.cli.main import main
from syncline.rehearsal.answer.pythonlaws import python_laws
from syncline.rehearsal.scenario import ScenarioError

ROOT = Path(__file__).resolve().parents[2]
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n"
SCENARIOS = """\
# +argocd:skip-file-rendering
scenarios:
- {name: blue, application: shop, expect: [{object: ConfigMap/colours, is: {data.sky: blue}}]}
- {name: red, application: shop, expect: [{object: ConfigMap/colours, is: {data.sky: red}}]}
"""
LAWS = """\
class NoMaps:
    name, demand, reason = "no-maps", "there is no ConfigMap in shop", "they are out of fashion"

    def check(self, record):
        for ref, versions in record.by_ref.items():
            if ref.kind == "ConfigMap" and ref.namespace == "shop":
                yield versions[0].at, f"{ref.name} is there"


class Odd:
    name, demand, reason = "odd", "this can be judged", "it cannot"

    def check(self, record):
        raise ValueError("no idea")


LAWS = [NoMaps(), Odd()]
"""


def test_the_entry_point_names_the_plugin_which_imports_nothing_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugin = project["entry-points"]["pytest11"]["syncline"]
    assert hasattr(importlib.import_module(plugin), "pytest_collect_file")
    code = f"import sys, {plugin}; print([m for m in sys.modules if m.startswith('syncline.') and '.cli' not in m])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout.strip() == "[]"


@pytest.mark.process
def test_pytest_runs_the_scenarios_of_a_folder_as_items(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "map.yaml").write_text(MAP)
    (repository / "shop.rehearsal.yaml").write_text(SCENARIOS)
    (repository / "wrong.rehearsal.yaml").write_text(SCENARIOS.replace("blue,", "a/b,"))
    (tmp_path / "laws.py").write_text(LAWS)
    plugin = ["-p", "no:cacheprovider", "-p", "syncline.cli.rehearse.pytestplugin", "-c", "/dev/null"]
    options = ["--rootdir", str(repository), "--rehearsal-laws", str(tmp_path / "laws.py"), "-rA"]
    command = [sys.executable, "-m", "pytest", *plugin, *options, "--continue-on-collection-errors", str(repository)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    text = found.stdout
    assert "scenarios[0].name: found 'a/b'" in text and "1 error" in text
    assert "ConfigMap/shop/colours: data.sky is 'blue', not 'red'" in text
    assert "unsafe: colours is there, at +0s (law no-maps)" in text and "2 failed" in text


def test_laws_in_python_that_lie_in_the_repository_are_never_run(tmp_path: Path) -> None:
    file = tmp_path / "tools" / "laws.py"
    file.parent.mkdir()
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{LAWS}")
    with pytest.raises(ScenarioError, match="lies in the repository that it judges"):
        python_laws(file, tmp_path)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(ScenarioError, match="lies in the repository"):
        python_laws(tmp_path / "link", file.parent)
    assert not (tmp_path / "ran").exists()
    (tmp_path / "other").mkdir()
    assert [law.name for law in python_laws(file, tmp_path / "other")] == ["no-maps", "odd"]


def test_rehearse_takes_such_laws_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "map.yaml").write_text(MAP)
    (tmp_path / "laws.py").write_text(LAWS.replace("shop", "repository").replace(", Odd()", ""))
    options = ["--laws", str(tmp_path / "laws.py"), "--namespace", "repository", "--no-range", "--no-cures"]
    assert main(["rehearse", str(repository), *options]) == 4
    assert "no-maps at +0s: colours is there; demanded: there is no ConfigMap" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("LAWS = 1", "allowed: a list LAWS of at most 100 laws"),
        ("LAWS = [1]", r"LAWS\[0\]: found 1; allowed: an object with name"),
    ],
)
def test_a_file_without_laws_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "laws.py").write_text(text)
    with pytest.raises(ScenarioError, match=said):
        python_laws(tmp_path / "laws.py", tmp_path / "repository")

"""``syncline node-agent apply``: which files it takes, and what it says of those that it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from syncline.cli.main import main
from syncline.machineconfig.agent.files.disk import Difference
from syncline.machineconfig.agent.steps import Checked

BUTANE = """variant: openshift
version: 4.16.0
metadata: {name: 99-motd, labels: {machineconfiguration.openshift.io/role: worker}}
storage: {files: [{path: /etc/motd, contents: {inline: hello}}]}
"""


def config(spec: Any) -> str:
    kind = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig"}
    return json.dumps(kind | {"metadata": {"name": "99-a"}, "spec": spec})


def apply(folder: Path, file: str, content: str | bytes) -> int:
    (folder / "root").mkdir(exist_ok=True)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return main(["node-agent", "apply", "-f", str(folder / file), "--root", str(folder / "root")])


def test_a_butane_document_is_written_below_the_root_and_it_says_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply(tmp_path, "motd.bu", BUTANE) == 0
    assert (tmp_path / "root/etc/motd").read_text() == "hello"
    assert capsys.readouterr().out == f"99-motd is written below {tmp_path / 'root'}: 1 file\n"


def test_what_is_no_part_of_a_tree_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(tmp_path, "a.yaml", config({"kernelArguments": ["nosmt"], "kernelType": "realtime"})) == 0
    assert capsys.readouterr().out.splitlines() == [
        "left out: spec.kernelArguments; files, units, keys and passwords alone are written",
        "left out: spec.kernelType; files, units, keys and passwords alone are written",
        f"99-a is written below {tmp_path / 'root'}: nothing is in it",
    ]


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (b"\xff\xfe\x00", 2, "a.yaml:1: the text is not UTF-8"),
        ("a: [", 2, "a.yaml:2:1: while parsing a flow node"),
        ("", 2, "a.yaml: found nothing; give one MachineConfig"),
        (config([1]), 2, "a.yaml: spec is [1], it must be an object"),
        (f"{config({})}\n---\n{config({})}", 2, "a.yaml: found MachineConfig, MachineConfig; give one MachineConfig"),
        (config({"config": {"ignition": {"version": "9.9.0"}}}), 1, "a.yaml: failed to parse Ignition config: "),
    ],
    ids=["binary", "torn", "empty", "list", "two", "version"],
)
def test_a_file_that_cannot_be_taken_is_one_clear_error(
    content: str | bytes, code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply(tmp_path, "a.yaml", content) == code
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: -f ") and told in said.err
    assert not (tmp_path / "root/etc/machine-config-daemon/currentconfig").exists()


@pytest.mark.parametrize(
    ("checked", "summary"),
    [
        (Checked(None), "it is as it should be"),
        (Checked(None, "", None), "it is as it should be"),
        (Checked(Difference('content mismatch for file "/etc/a"')), 'content mismatch for file "/etc/a"'),
        (Checked(None, "no space"), "what was staged was not put in place: no space"),
    ],
)
def test_a_check_of_the_disk_is_summarized(checked: Checked, summary: str) -> None:
    assert checked.summary == summary


def test_an_agent_below_a_directory_says_at_once_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "root").mkdir()
    words = ["node-agent", "--once", "--patience", "0", "--node", "edge", "--root", str(tmp_path / "root")]
    words += ["--kubeconfig", str(tmp_path / "kubeconfig")]
    assert main(words) == 1
    assert (
        "does not run: an update that needs a reboot or a service will fail; with --offline" in capsys.readouterr().err
    )
    assert main([*words, "--offline"]) == 1
    assert "does not run" not in capsys.readouterr().err


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_what_stood_there_comes_back_however_often_the_same_was_written(rounds: int, tmp_path: Path) -> None:
    """Every update writes all files again, those that it does not change, too."""
    status = tmp_path / "root/var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.touch()
    (tmp_path / "root/etc").mkdir()
    (tmp_path / "root/etc/motd").write_text("theirs")
    for _ in range(rounds):
        assert apply(tmp_path, "motd.bu", BUTANE) == 0
    assert (tmp_path / "root/etc/motd").read_text() == "hello"
    assert apply(tmp_path, "none.yaml", config({})) == 0
    assert (tmp_path / "root/etc/motd").read_text() == "theirs"

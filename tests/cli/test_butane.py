"""``syncline butane`` as a command: flags as pflag reads them, exit codes, streams, what is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncline.cli.files.butane import butane
from syncline.cli.main import cli, main

HEADER = "variant: fcos\nversion: 1.5.0\n"
WARNED = HEADER + "foo: 1\n"
CONFIG = '{"ignition":{"version":"3.4.0"}}\n'


def run(*words: str, text: str = HEADER) -> Result:
    return CliRunner().invoke(butane, list(words), input=text)


def test_usage_goes_to_stdout_when_asked_for_and_to_stderr_when_words_are_wrong_b005() -> None:
    asked = run("-h")
    assert (asked.exit_code, asked.stderr) == (0, "")
    assert asked.stdout.startswith("Usage: syncline butane [options] [input-file]\n")
    wrong = run("a", "b")
    assert (wrong.exit_code, wrong.stdout, wrong.stderr) == (2, "", asked.stdout)
    assert CliRunner().invoke(cli, ["butane", "--help"]).stdout == asked.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--bogus"], "unknown flag: --bogus"),
        (["-pz"], "unknown shorthand flag: 'z' in -z"),
        (["--files-dir"], "flag needs an argument: --files-dir"),
        (["-d"], "flag needs an argument: 'd' in -d"),
        (["--=x"], "bad flag syntax: --=x"),
        (["-p=maybe"], 'invalid argument "maybe" for "-p, --pretty" flag: strconv.ParseBool: parsing "maybe": invalid'),
    ],
)
def test_wrong_flags_are_exit_2_b005(words: list[str], complaint: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""


def test_a_missing_file_is_named_as_upstream_names_it_b005() -> None:
    result = run("nofile")
    assert result.exit_code == 1
    assert result.stderr == "failed to open nofile: open nofile: no such file or directory\n"


def test_version_is_butanes_so_that_scripts_find_it() -> None:
    assert run("--version").stdout.startswith("Butane v0.29.0 (syncline ")


@pytest.mark.parametrize(
    "words", [["-sp"], ["-s", "-p"], ["--strict=true", "--pretty"], ["-p=1", "-s=t"], ["-c=false", "-p", "--"]]
)
def test_flags_may_be_joined_and_given_values(words: list[str]) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (0, '{\n  "ignition": {\n    "version": "3.4.0"\n  }\n}\n')


def test_strict_check_and_output_b007(tmp_path: Path) -> None:
    target = tmp_path / "out"
    strict = run("--strict", "-o", str(target), text=WARNED)
    assert (strict.exit_code, strict.stdout, target.exists()) == (1, "", False)
    assert strict.stderr.endswith("\nConfig produced warnings and --strict was specified\n")
    assert (run("--check", f"-o{target}").exit_code, target.exists()) == (0, False)
    assert run(f"--output={target}").stdout == ""
    assert target.read_text() == CONFIG


def test_files_and_flags_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.bu").write_text(HEADER)
    assert run(str(tmp_path / "a.bu"), "-s").stdout == CONFIG
    assert run("-s", "--", str(tmp_path / "a.bu")).stdout == CONFIG
    old = run("--input", str(tmp_path / "a.bu"))
    assert old.stdout == CONFIG
    assert old.stderr == "Flag --input has been deprecated, specify filename directly on command line\n"


def test_colors_are_written_when_asked_for() -> None:
    assert "\x1b[1;33mwarning\x1b[0m[$.foo]:" in run("--color", text=WARNED).stderr
    assert "\x1b" not in run(text=WARNED).stderr
    assert "\x1b" not in run("--color=always", "--raw-errors", text=WARNED).stderr


def test_a_local_file_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    result = run(
        "-d", str(tmp_path), "--raw-errors", text=HEADER + "storage: {files: [{path: /a, contents: {local: fifo}}]}"
    )
    assert result.exit_code == 1
    assert "fifo: not a regular file" in result.stderr


def test_a_document_in_a_folder_is_planned_as_its_machine_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pools"
    folder.mkdir()
    (folder / "worker.bu").write_text(
        "variant: openshift\nversion: 4.16.0\n"
        "metadata: {name: 99-worker, labels: {machineconfiguration.openshift.io/role: worker}}\n"
    )
    assert main(["plan", "--local", str(folder), "--against", "empty"]) == 3
    told = capsys.readouterr().out
    assert "+ create  MachineConfig default/99-worker  not in the cluster" in told
    assert "next: install the definition of the kind first" in told


def test_nothing_is_loaded_that_a_translation_does_not_need() -> None:
    """What start-up costs: less than 150 ms for the whole run (``python -m bench butane``)."""
    program = (
        "import sys; from syncline.cli.main import main\n"
        "try: main(['butane'])\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=HEADER, capture_output=True, text=True, check=True)
    assert done.stdout == CONFIG
    loaded = set(done.stderr.split())
    assert not loaded & {
        "msgspec",
        "aiohttp",
        "asyncio",
        "http.client",
        "ssl",
        "subprocess",
        "decimal.Decimal",
        "kubernetes",
    }
    assert not {name for name in loaded if name.startswith(("syncline.sources", "syncline.gitops", "syncline.cluster"))}
    assert len([name for name in loaded if name.startswith("syncline")]) <= 45, "each costs half a millisecond or more"
    assert "syncline.ignition.butane.deflate" not in loaded
    assert "syncline.ignition.butane.yaml_output" not in loaded

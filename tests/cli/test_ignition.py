"""``syncline ignition``: the texts, streams and exit codes of ignition-validate, and the ways between versions."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.ignition.recordings import judge, raw_input, run_as, same_text

from syncline.cli.main import main

SPEC_2 = {
    "ignition": {"version": "2.3.0"},
    "storage": {
        "filesystems": [{"name": "var", "mount": {"device": "/dev/v", "format": "xfs", "create": {"force": True}}}],
        "files": [{"filesystem": "var", "path": "/x", "mode": 420, "contents": {"source": "data:,hi"}}],
    },
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(["ignition", *arguments])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def put(folder: Path, name: str, config: Any) -> str:
    (folder / name).write_text(json.dumps(config))
    return str(folder / name)


@pytest.mark.parametrize("case", run_as("validate", "ignition-validate"), ids=lambda case: case["id"])
def test_validate_prints_and_exits_as_ignition_validate(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.ign").write_bytes(raw_input(case))
    code, out, err = run(capsys, "validate", str(tmp_path / "config.ign"))
    expect = case["expect"]
    same = expect.get("printf_quirk") or same_text(case, out, expect["stdout"])
    judge(case, code == expect["exit"] and same and same_text(case, err, expect["stderr"]), (code, out, err))


def test_a_file_that_is_not_there_is_told_in_upstreams_words(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = "couldn't read config: open /nowhere/x.ign: no such file or directory\n"
    assert run(capsys, "validate", "/nowhere/x.ign") == (1, "", wanted)


@pytest.mark.parametrize("words", [("validate",), ("convert", "--to", "3.4.0"), ("merge", "-")], ids=" ".join)
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("variant: fcos\nversion: 1.5.0\n", "is Butane; `syncline butane "),
        ("kind: MachineConfig\n", "is a MachineConfig; `syncline mc render worker --offline -f "),
        ('{"kind": "MachineConfig"}', "is a MachineConfig; `syncline mc render worker --offline -f "),
    ],
    ids=["butane", "yaml", "json"],
)
def test_what_is_no_ignition_but_near_to_it_is_told(
    words: tuple[str, ...],
    text: str,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = io.BytesIO(b'{"ignition": {"version": "3.4.0"}}')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(parent))
    (tmp_path / "given").write_text(text)
    code, _, err = run(capsys, *words, str(tmp_path / "given"))
    assert code == 1 and f"hint: {tmp_path / 'given'} {hint}" in err


def test_the_report_comes_as_data_with_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = put(tmp_path, "a.ign", {"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "a"}]}})
    code, out, _ = run(capsys, "validate", "-o", "json", file)
    entry = {"severity": "error", "message": "path not absolute", "path": "$.storage.files.0.path"}
    wanted = {"valid": False, "error": "config is not valid", "entries": [entry | {"line": 1, "column": 67}]}
    assert (code, json.loads(out)) == (1, wanted)


def test_a_machine_config_is_judged_by_other_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = put(tmp_path, "old.ign", {"ignition": {"version": "2.2.0"}})
    assert run(capsys, "validate", old)[0] == 1
    assert run(capsys, "validate", "--machine-config", old) == (0, "", "")
    file = {"path": "/a", "mode": 0o1777, "contents": {"source": "data:,"}}
    sticky = put(tmp_path, "sticky.ign", {"ignition": {"version": "3.5.0"}, "storage": {"files": [file]}})
    assert run(capsys, "validate", "--machine-config", sticky)[2] == (
        "error: invalid mode 01777 for /a, cannot exceed 0777\n"
    )


def test_2_x_comes_to_a_newer_version_and_what_is_lost_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = put(tmp_path, "old.ign", SPEC_2)
    code, out, err = run(capsys, "convert", "--to", "3.5", "--filesystem", "var=/var", file)
    storage = {
        "files": [{"overwrite": True, "path": "/var/x", "contents": {"source": "data:,hi"}, "mode": 420}],
        "filesystems": [{"device": "/dev/v", "format": "xfs", "path": "/var"}],
    }
    assert (code, json.loads(out)) == (0, {"ignition": {"version": "3.5.0"}, "storage": storage})
    assert "warning: filesystem var: what its create object says is lost" in err


def test_a_filesystem_without_a_place_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "convert", "--to", "3.5.0", put(tmp_path, "old.ign", SPEC_2))
    assert (code, out) == (1, "")
    assert 'Config defined filesystem "var" but no mapping was defined.' in err
    assert run(capsys, "convert", "--to", "3.5.0", "--filesystem", "var", "x")[0] == 2


def test_an_older_client_gets_yaml_of_2_2_and_hears_what_2_2_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [{"path": "/a"}, {"path": "/b", "contents": {"source": "data:,b"}}]
    file = put(tmp_path, "new.ign", {"ignition": {"version": "3.3.0"}, "storage": {"files": files}})
    code, out, err = run(capsys, "convert", "--to", "2.2", "-o", "yaml", file)
    assert code == 0
    assert out == (
        "ignition:\n  version: 2.2.0\nstorage:\n  files:\n  - contents:\n      source: data:,b\n    filesystem: root\n"
        "    overwrite: false\n    path: /b\n"
    )
    assert err == "warning: 2.2.0 cannot hold the file /a, which has no contents\n"


def test_what_the_older_version_cannot_say_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = {"ignition": {"version": "3.3.0"}, "kernelArguments": {"shouldExist": ["quiet"]}}
    code, out, err = run(capsys, "convert", "--to", "3.1.0", file := put(tmp_path, "new.ign", kernel))
    assert (code, out, err) == (1, "", f"error: {file}: KernelArguments is not supported on 3.2\n")
    code, _, err = run(capsys, "convert", "--to", "9.0.0", file)
    assert code == 2 and "give one of 2.2.0, 3.0.0" in err


def test_children_are_laid_over_a_parent_in_the_newest_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def file(contents: str) -> dict[str, Any]:
        return {"path": "/a", "contents": {"source": f"data:,{contents}"}}

    parent = put(tmp_path, "p.ign", {"ignition": {"version": "3.1.0"}, "storage": {"files": [file("p")]}})
    first = put(tmp_path, "c.ign", {"ignition": {"version": "3.4.0"}, "storage": {"files": [file("c")]}})
    second = put(tmp_path, "d.ign", {"ignition": {"version": "3.0.0"}, "systemd": {"units": [{"name": "u.mount"}]}})
    code, out, err = run(capsys, "merge", parent, first, second)
    merged = {"storage": {"files": [file("c")]}, "systemd": {"units": [{"name": "u.mount"}]}}
    assert (code, json.loads(out), err) == (0, {"ignition": {"version": "3.4.0"}, **merged}, "")


def test_a_result_that_is_not_valid_is_printed_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def node(**user: Any) -> dict[str, Any]:
        return {"ignition": {"version": "3.4.0"}, "storage": {"directories": [{"path": "/a", "user": user}]}}

    code, out, err = run(capsys, "merge", put(tmp_path, "p", node(id=1)), put(tmp_path, "c", node(name="x")))
    assert code == 1 and json.loads(out)["storage"]["directories"][0]["user"] == {"id": 1, "name": "x"}
    assert err == "error at $.storage.directories.0.user: cannot set both id and name\n"

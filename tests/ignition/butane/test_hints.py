"""What is told beyond upstream, only when asked for: the complaints that users of Butane filed."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from tests.ignition.butane.test_behaviours import OPENSHIFT, MemoryFiles

from syncline.ignition.butane.transpile import Options, Transpiled, transpile
from syncline.kube.yaml import loading as yaml

FCOS = "variant: fcos\nversion: 1.5.0\n"
MACHINE_CONFIG = f"variant: openshift\nversion: 4.16.0\n{OPENSHIFT}"


def hinted(text: str, files: MemoryFiles | None = None, *, safe_yaml: bool = False) -> Transpiled:
    done = transpile(text.encode(), Options(files=files, hints=True, safe_yaml=safe_yaml))
    assert done.error is None, done.report
    return done


def hints(text: str, files: MemoryFiles | None = None, *, safe_yaml: bool = False) -> list[str]:
    return str(hinted(text, files, safe_yaml=safe_yaml).hints).splitlines()


def test_nothing_is_told_unless_asked_for_and_the_output_stays_the_same() -> None:
    text = FCOS + "storage: {files: [{path: /a, contents: {inline: x, compression: gzip}}]}"
    silent = transpile(text.encode())
    assert not silent.hints
    assert (hinted(text).output, str(hinted(text).report)) == (silent.output, str(silent.report))


@pytest.mark.parametrize("field", ["contents", "append"])
def test_contents_that_only_claim_to_be_compressed_are_told(field: str) -> None:
    resource = "{inline: plain, compression: gzip}"
    body = f"storage: {{files: [{{path: /a, {field}: {resource if field == 'contents' else f'[{resource}]'}}}]}}"
    (line,) = hints(FCOS + body)
    assert line.startswith(f"info at $.storage.files.0.{field}")
    assert line.split(": ", 1)[1] == "compression is gzip, but the contents are not compressed"


def test_contents_that_are_compressed_are_not_told() -> None:
    packed = base64.b64encode(gzip.compress(b"x")).decode()
    body = f"storage: {{files: [{{path: /a, contents: {{source: 'data:;base64,{packed}', compression: gzip}}}}]}}"
    assert hints(FCOS + body) == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"ignition": {"version": "3.4.0"}}, ""),
        ({"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "a"}]}}, "path not absolute"),
        ({"ignition": {"version": "9.9.9"}}, "unsupported config version"),
        ({}, "invalid config version"),
    ],
)
def test_local_configs_are_judged_as_inline_ones_are(config: object, said: str) -> None:
    files = MemoryFiles({"a.ign": json.dumps(config).encode()})
    lines = hints(FCOS + "ignition: {config: {merge: [{local: a.ign}]}}", files)
    assert bool(lines) is bool(said)
    assert all(line.startswith("info at $.ignition.config.merge.0.local, line 3 col ") for line in lines)
    assert said in "".join(lines)


def test_a_path_below_a_file_is_told() -> None:
    (line,) = hints(FCOS + "storage: {files: [{path: /a}, {path: /ab}], links: [{path: /a/b/c, target: t}]}")
    assert line.startswith("info at $.storage.links.0.path, ")
    assert line.endswith(": /a is a file of this config and cannot hold /a/b/c")


DAMAGED = MACHINE_CONFIG + (
    "storage: {disks: [{device: /dev/a, partitions: [{number: 1, size_mib: 1000000}]}]}\n"
    'systemd: {units: [{name: a.service, contents: "\\n[U]\\na=\\u2028b\\n"}]}'
)


def test_what_the_yaml_of_butane_damages_is_told() -> None:
    assert [line.split(",")[0].removeprefix("info at $.") for line in hints(DAMAGED)] == [
        "storage.disks.0.partitions.0.size_mib",
        "systemd.units.0.contents",
        "systemd.units.0.contents",
    ]


def test_safe_yaml_keeps_every_text_and_number() -> None:
    done = hinted(DAMAGED, safe_yaml=True)
    assert not done.hints
    assert done.output is not None
    assert yaml.load(done.output) == done.value
    assert b"sizeMiB: 1000000" in done.output
    damaged = transpile(DAMAGED.encode()).output
    assert damaged is not None
    assert yaml.load(damaged) != done.value


def test_ignition_as_json_is_never_damaged() -> None:
    assert hints(FCOS + 'systemd: {units: [{name: a.service, contents: "\\n[U]\\na=\\u2028b\\n"}]}') == []


@pytest.mark.parametrize(
    ("behind", "told"),
    [("", []), ("---\n", []), ("---\na: 1\n", ["1 more document follows"]), ("---\na: 1\n" * 2, ["2 more documents"])],
)
def test_documents_behind_the_first_are_told_since_butane_leaves_them_out(behind: str, told: list[str]) -> None:
    found = hints(f"{FCOS}{behind}")
    assert len(found) == len(told)
    assert all(wanted in line for wanted, line in zip(told, found, strict=True))

"""Every recorded build of the real engine, built again: exit, bytes, warnings."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.sources.kustomize.build import build
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.loader import Source, TreeFiles
from syncline.sources.tree import MemoryTree

FOLDER = CONFORMANCE / "kustomize"
KNOWN: dict[str, str] = json.loads((Path(__file__).parent / "known.json").read_text())

PHRASES = (
    "no such file",
    "security; file",
    "cycle detected",
    "already registered id",
    "unknown field",
    "cannot unmarshal",
    "must specify --enable-helm",
    "external plugins disabled",
    "unable to find one of",
    "kustomization.yaml is empty",
    "Found multiple kustomization files",
    "apiVersion for Kustomization should be",
    "missing metadata.name",
    "missing Resource metadata",
    "MalformedYAMLError",
    "no matches for Id",
    "multiple matches for",
    "nothing selected by",
    "illegally repeats the key",
    "behavior must be merge or replace",
    "expected kind",
    "already encountered",
    "cannot be mapped to a field",
    "unable to load builtin",
    "must build at directory",
    "must be one of [fifo, legacy]",
    "does not match a config with the following GVK",
    "namespace transformation produces ID conflict",
    "unable to parse SM or JSON patch",
    "already defined",
    "unsupported value",
)
"""Words of kustomize's errors that people search for."""

pytestmark = pytest.mark.skipif(not (FOLDER / "build.jsonl").exists(), reason=absent(FOLDER))


def cases() -> list[dict[str, Any]]:
    if not (FOLDER / "build.jsonl").exists():
        return []
    return [json.loads(line) for line in (FOLDER / "build.jsonl").read_text().splitlines()]


def content(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def answer(case: dict[str, Any]) -> tuple[int, str, list[str]]:
    """Exit, output and warnings, as the command prints them but for the time of log lines."""
    options = case["input"]["options"]
    files = {name: content(value) for name, value in case["input"]["files"].items()}
    restricted = options.get("loadRestrictor") != "LoadRestrictionsNone"
    source = Source(TreeFiles(MemoryTree(files)), label="<root>", restricted=restricted)
    try:
        built = build(source, case["input"]["path"], order=options.get("reorder", ""))
    except BuildError as error:
        return 1, "", [str(error)]
    return 0, built.text, [*built.warnings, *built.notices]


def expected_warnings(case: dict[str, Any]) -> list[str]:
    lines = [line.removeprefix("<time> ") for line in case["expect"]["stderr"].splitlines() if line]
    return [line for line in lines if not line.startswith("Flag --reorder")]


def disagreement(case: dict[str, Any]) -> str:
    wanted = case["expect"]
    code, text, warnings = answer(case)
    if code != wanted["exit"]:
        return f"exit {code}: {warnings}"
    if wanted["exit"]:
        return ""
    if text != wanted["stdout"]:
        return "the text differs"
    return "" if warnings == expected_warnings(case) else f"warnings {warnings}"


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['id']} {case['about']}")
def test_a_recorded_build_gives_the_same_bytes(case: dict[str, Any]) -> None:
    found = disagreement(case)
    if case["id"] in KNOWN:
        assert found, "agrees now: take it off the list of known differences"
        return
    assert not found, case["origin"]


@pytest.mark.parametrize(
    "case", [case for case in cases() if case["expect"]["exit"]], ids=lambda case: f"{case['id']} {case['about']}"
)
def test_a_refusal_names_what_the_recorded_one_names(case: dict[str, Any]) -> None:
    """The wording is ours where it is better; files, fields and resources have to be the same."""
    said, recorded = " ".join(answer(case)[2]), case["expect"]["stderr"]
    for phrase in PHRASES:
        assert phrase not in recorded or phrase in said


def test_at_least_98_of_100_recorded_builds_agree() -> None:
    recorded = cases()
    assert len([case for case in recorded if case["id"] in KNOWN]) <= len(recorded) * 0.02

"""Every name under ``syncline.dev/`` is in the table and the documentation; notes that cannot be read are none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from syncline.kube.schema.extensions import EXTENSIONS, MAX_NOTE, json_note

ROOT = Path(__file__).resolve().parents[3]
NAME = re.compile(r"syncline\.dev/([a-z][a-z0-9-]*)")
NO_NAME = {"v1alpha1"}
"""The version of our API group."""


def names_in(text: str) -> set[str]:
    """Names in strings of code, not in what it says about itself."""
    tree = ast.parse(text)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said]
    return {name for one in strings if isinstance(one.value, str) for name in NAME.findall(one.value)} - NO_NAME


def used() -> dict[str, str]:
    files = sorted((ROOT / "src" / "syncline").rglob("*.py"))
    texts = {path: path.read_text() for path in files}
    return {name: path.name for path, text in texts.items() if "syncline.dev/" in text for name in names_in(text)}


def test_every_name_in_the_source_is_in_the_table() -> None:
    known = {one.name for one in EXTENSIONS}
    missing = {name: file for name, file in used().items() if name not in known}
    assert not missing, f"add them to syncline/kube/schema/extensions.py and docs/extensions.md: {missing}"


def test_the_walk_sees_a_name_that_is_not_in_the_table() -> None:
    assert names_in('"""syncline.dev/doc"""\nX = f"syncline.dev/{x}"\nY = "syncline.dev/new"') == {"new"}


def test_the_table_names_nothing_that_is_gone() -> None:
    machines = "".join(path.read_text() for path in (ROOT / "src/syncline/cluster/machines").rglob("*.py"))
    found = used()
    read = {one.name for one in EXTENSIONS if one.name in found or (one.on == "Pod" and f'"{one.name}"' in machines)}
    assert {one.name for one in EXTENSIONS} - read == set()


def test_notes_of_objects_are_read_with_the_one_reader() -> None:
    """An annotation nested deep enough ends a pass by recursion where json is asked itself."""
    files = sorted((ROOT / "src" / "syncline").rglob("*.py"))
    assert [path.name for path in files if "json.loads(annotations_of" in path.read_text()] == []


def test_each_name_stands_once_in_the_table_and_in_the_documentation() -> None:
    assert len({one.name for one in EXTENSIONS}) == len(EXTENSIONS)
    text = (ROOT / "docs" / "extensions.md").read_text()
    assert [one.name for one in EXTENSIONS if not re.search(rf"[`/]{re.escape(one.name)}", text)] == []


UNREADABLE = ["", "[", "nul", "[" * 60_000, '"' + "x" * MAX_NOTE + '"', '{"a":' * 10_000, "9" * 5_000]


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: f"{text[:9]}-{len(text)}")
def test_a_note_that_cannot_be_read_is_none(text: str) -> None:
    assert json_note({"metadata": {"annotations": {"syncline.dev/held": text}}}, "syncline.dev/held") is None

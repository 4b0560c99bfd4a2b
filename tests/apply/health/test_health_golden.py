"""Health by golden files: ``tests/golden/health/GROUP/KIND/CASE.yaml`` with ``object``, ``status`` and ``message``.

Whoever adds a kind adds its cases here; ``docs/health-tables.md`` tells how.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.apply.health import health_of
from syncline.apply.health.known import all_tables, known_steps
from syncline.kube.objects import GroupKind, gvk_of
from syncline.kube.yaml.loading import load

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "health"
CASES = sorted(FOLDER.glob("*/*/*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
def test_an_object_is_as_healthy_as_its_golden_file_says(path: Path) -> None:
    case = load(path.read_text(encoding="utf-8"), file=path.name)
    health = health_of(case["object"])
    assert health is not None
    assert (health.status, health.message) == (case["status"], case.get("message", ""))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
def test_a_golden_file_lies_in_the_folder_of_its_kind(path: Path) -> None:
    gvk = gvk_of(load(path.read_text(encoding="utf-8"))["object"])
    assert (path.parents[1].name, path.parent.name) == (gvk.group, gvk.kind)


def test_every_table_can_be_read() -> None:
    tables = all_tables()
    assert sum(len(kinds) for kinds in tables.values()) >= 241
    assert all(steps for kinds in tables.values() for steps in kinds.values())


def test_a_kind_of_its_own_file_wins_over_a_wildcard_group() -> None:
    own = known_steps(GroupKind("iam.aws.crossplane.io", "Role"))
    others = known_steps(GroupKind("iam.aws.crossplane.io", "User"))
    assert own is not None
    assert own == all_tables()["iam.aws.crossplane.io"]["Role"]
    assert others == all_tables()["_.crossplane.io"]["_"]


def test_a_kind_that_no_table_knows_has_no_health() -> None:
    assert known_steps(GroupKind("example.dev", "Widget")) is None
    assert health_of({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}}) is None

"""``syncline ansible plan``: what an AnsibleConfig would ask of nodes, from a folder on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from syncline.cli.ansible.nodes import outstanding, plan_ansible_config
from syncline.cli.frame.failure import BLOCKED, CommandFailed

CONFIG = """\
apiVersion: syncline.dev/v1alpha1
kind: AnsibleConfig
metadata: {name: motd}
spec: {repository: {repoURL: https://git.example/a}, pool: worker, playbook: site.yml}
"""
SITE = (
    "- hosts: all\n%s  tasks:\n    - {name: the message, copy: {content: x, dest: /etc/motd}, tags: [syncline.drain]}\n"
)


def plan(folder: Path, extra: str = "") -> str:
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "site.yml").write_text(SITE % extra)
    words = ["-f", str(folder / "config.yaml"), "--folder", str(folder)]
    return CliRunner().invoke(plan_ansible_config, words, catch_exceptions=False).output


def test_a_plan_names_tasks_places_and_disruption(tmp_path: Path) -> None:
    first, second = plan(tmp_path).splitlines()
    assert first.startswith("site.yml: 1 tasks, ") and first.endswith("disruption Drain")
    assert second == "  site.yml:3  the message  [syncline.drain]"


def test_a_refusal_is_the_exit_code_of_what_is_blocked(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"refused: site\.yml:2: serial is refused") as failed:
        plan(tmp_path, "  serial: 1\n")
    assert failed.value.code == BLOCKED


def config(ready: str, applied: str, *lines: dict[str, object], observed: int = 2) -> Any:
    conditions = [
        {"type": "Ready", "status": ready, "reason": "Resolved" if ready == "True" else "Refused", "message": "why"},
        {"type": "Applied", "status": applied, "message": "1 of 3 nodes have it"},
    ]
    status = {"observedGeneration": observed, "conditions": conditions, "nodeStatuses": list(lines)}
    return {"metadata": {"name": "motd", "generation": 2}, "status": status}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (config("True", "True", observed=1), "its controller"),
        (config("True", "False"), "1 of 3 nodes have it"),
        (config("True", "True"), ""),
    ],
)
def test_a_wait_says_what_is_left(given: Any, left: str) -> None:
    assert outstanding(given) == left


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (config("False", "False"), "ansibleconfig/motd is Refused: why"),
        (
            config("True", "False", {"name": "a", "phase": "Failed", "failed": {"task": "x", "place": "site.yml:3"}}),
            r"ansibleconfig/motd is Failed on a: x \(site.yml:3\)",
        ),
        (
            config("True", "True", {"name": "a", "phase": "Drifted", "tasks": [{"task": "y"}]}),
            "ansibleconfig/motd is Drifted on a: y",
        ),
    ],
)
def test_a_wait_ends_where_a_person_is_needed(given: Any, said: str) -> None:
    with pytest.raises(CommandFailed, match=said):
        outstanding(given)

"""The demo of ``syncline rehearse``: a change that cannot be made, found and cured without a cluster."""

from __future__ import annotations

import json

import pytest

from syncline.cli.main import main


def test_the_demo_finds_the_drain_that_cannot_end_and_proves_its_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--demo", "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["outcome"] == "blocked"
    assert "drain not begun" in answer["headline"] and "budget web" in answer["headline"]
    cures = {cure["text"]: cure["outcome"] for cure in answer["cures"]}
    assert cures == {
        "run 2 worker nodes instead of 1": "safe",
        "run 3 replicas of Deployment shop/web instead of 2": "blocked",
        "let budget shop/web allow one more pod to leave (minAvailable 1 → 0)": "unsafe",
    }
    assert "-  count: 1\n+  count: 2\n" in answer["cures"][0]["diff"]
    assert {one["origin"] for one in answer["durations"]} == {"guessed"}

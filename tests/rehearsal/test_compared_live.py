"""Stories in real time, with processes, HTTP and watches, go as they go in virtual time: in order and outcome."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("story", ["operator-waves", "multi-source"])
def test_a_story_goes_live_as_it_is_rehearsed(story: str) -> None:
    command = [sys.executable, "tools/compare_live.py", f"examples/{story}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"agrees   {story}: "), done.stdout

"""The recorded conversations with a Kubernetes control plane, replayed over HTTP against the embedded cluster.

One test, of up to a minute: the replay tool runs beside the others, as a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live import served_cluster

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SYNCLINE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
AGREEING_PERCENT = 99.5
"""A ratchet: raise it with the figure, never lower it."""

LONGEST_S = 900


@pytest.mark.skipif(not (FOLDER / "kubecheck").exists(), reason="no recordings: set SYNCLINE_CONFORMANCE")
def test_the_api_answers_as_kubernetes_did(tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    recordings = sorted(str(path) for path in (FOLDER / "recorded").glob("*.json"))
    with served_cluster(tmp_path) as served:
        replay = subprocess.run(
            [
                *(sys.executable, str(FOLDER / "kubecheck"), "replay", "--kubeconfig", str(served.kubeconfig)),
                *("--jobs", "8", "--patience", "3", "--quiet", "--min-percent", str(AGREEING_PERCENT)),
                *recordings,
            ],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    *scenarios, total = replay.stdout.splitlines() or ["no answer"]
    figure("Kubernetes API recordings", total)
    assert replay.returncode == 0, "\n".join([replay.stderr, *scenarios, total])

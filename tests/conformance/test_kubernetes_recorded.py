"""The recorded conversations with a Kubernetes control plane, replayed over HTTP against the embedded cluster.

Two sets: the one handed out with the replay tool, and ours, recorded with the same tool from a Kubernetes 1.36.2
control plane (etcd, API server, controller manager, scheduler, no nodes; built from its published sources) and kept in
``kubernetes/``. One test a set, of minutes: the replay tool runs beside the others, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live import served_cluster
from tests.recorded import CONFORMANCE, absent

OURS = Path(__file__).with_name("kubernetes")
AGREEING_PERCENT = 99.5
"""A ratchet: raise it with the figure, never lower it."""

LONGEST_S = 900


@pytest.mark.skipif(not (CONFORMANCE / "kubecheck").exists(), reason=absent(CONFORMANCE / "kubecheck"))
@pytest.mark.parametrize("folder", [CONFORMANCE, OURS], ids=["given", "ours"])
def test_the_api_answers_as_kubernetes_did(folder: Path, tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    recordings = sorted(str(path) for path in (folder / "recorded").glob("*.json"))
    if not recordings:
        pytest.skip("no recordings in this set")
    with served_cluster(tmp_path) as served:
        replay = subprocess.run(
            [
                *(sys.executable, str(CONFORMANCE / "kubecheck"), "replay", "--kubeconfig", str(served.kubeconfig)),
                *("--jobs", "8", "--patience", "60", "--quiet", "--min-percent", str(AGREEING_PERCENT)),
                *recordings,
            ],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    *scenarios, total = replay.stdout.splitlines() or ["no answer"]
    figure(f"Kubernetes API recordings, {folder.name}", total)
    assert replay.returncode == 0, "\n".join([replay.stderr, *scenarios, total])

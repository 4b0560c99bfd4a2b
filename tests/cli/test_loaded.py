"""What a command loads: a plan of plain manifests waits for no engine that it does not use."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "asyncio",
    "cryptography",
    "jwt",
    "syncline.apply.health.table",
    "syncline.ignition.butane.transpile",
    "syncline.kube.cel.program",
    "syncline.kube.text.jsonpath",
    "syncline.sources.remote.artifacts",
    "syncline.sources.kustomize.engine",
)


def test_a_plan_loads_no_engine_before_a_source_or_condition_wants_it() -> None:
    code = "import sys, syncline.cli.plan; print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert sorted(set(found.splitlines()) & set(HEAVY)) == []

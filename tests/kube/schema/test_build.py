"""The shipped schema data is what the build tool makes."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT / "src" / "syncline" / "kube" / "schema" / "data"
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import build_schema
published = build_schema.source()
sys.stdout.buffer.write(getattr(build_schema, sys.argv[2])(published))
"""


@pytest.mark.parametrize("name", ["definitions", "descriptions"])
def test_the_shipped_data_is_what_the_tool_makes(name: str) -> None:
    pytest.importorskip("kubernetes_validate")
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "tools"), f"build_{name}"], capture_output=True, check=True
    ).stdout
    assert made == lzma.decompress((DATA / f"{name}.json.xz").read_bytes())

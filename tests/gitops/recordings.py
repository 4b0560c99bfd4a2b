"""Reads the recorded conformance cases of the gitops rooms; empty where the folder is missing."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SYNCLINE_CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "gitops"


@cache
def cases(kind: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{kind}.jsonl"
    if not path.exists():
        print(f"no recordings at {path}: set SYNCLINE_CONFORMANCE")  # noqa: T201
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]

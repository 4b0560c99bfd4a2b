"""Writes files that contain credentials."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: str) -> None:
    """Replace a file atomically; only its owner may read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # new: no link waits there
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise

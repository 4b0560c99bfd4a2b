"""The file of a snapshot, packed or not: :func:`read_snapshot`."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from syncline.rehearsal.given.snapshot import world_of
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.scenario import ScenarioError

MAX_BYTES = 512 * 1024 * 1024
"""Of a snapshot, unpacked."""
MAX_MEMORY = 256 * 1024 * 1024
PACKED = b"\xfd7zXZ"


def read_snapshot(file: Path) -> GivenWorld:
    """Return the world of a file that ``syncline snapshot`` wrote. Raises ScenarioError (usage)."""
    return world_of(_unpacked(file), file.name)


def _unpacked(file: Path) -> Any:
    if file.stat().st_size > MAX_BYTES:
        raise ScenarioError(f"{file}: is larger than {MAX_BYTES // 2**20} MiB", usage=True)
    try:
        raw = file.read_bytes()
        if raw.startswith(PACKED):
            unpacker = lzma.LZMADecompressor(memlimit=MAX_MEMORY)
            raw = unpacker.decompress(raw, MAX_BYTES)
            if not unpacker.eof:
                said = f"{file}: is cut off, or more than {MAX_BYTES // 2**20} MiB unpacked"
                raise ScenarioError(said, usage=True)
        return json.loads(raw)
    except (lzma.LZMAError, ValueError) as error:
        said = f"{file}: is no snapshot: {error}; `syncline snapshot > FILE` writes one"
        raise ScenarioError(said, usage=True) from error

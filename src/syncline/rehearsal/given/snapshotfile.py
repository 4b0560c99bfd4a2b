"""The file of a snapshot, packed or not: :func:`read_snapshot`."""

from __future__ import annotations

import json
from pathlib import Path

from syncline.rehearsal.given.packed import read_packed
from syncline.rehearsal.given.snapshot import world_of
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.scenario import ScenarioError

MAX_BYTES = 512 * 1024 * 1024
"""Of a snapshot, unpacked."""
WRITTEN_BY = "`syncline snapshot > FILE`"


def read_snapshot(file: Path) -> GivenWorld:
    """Return the world of a file that ``syncline snapshot`` wrote. Raises ScenarioError (usage)."""
    raw = read_packed(file, MAX_BYTES, WRITTEN_BY)
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{file}: is no snapshot: {error}; {WRITTEN_BY} writes one", usage=True) from error
    return world_of(found, file.name)

"""Files that may be packed by xz, read within bounds: :func:`read_packed`."""

from __future__ import annotations

import lzma
from pathlib import Path

from syncline.rehearsal.scenario import ScenarioError

XZ = b"\xfd7zXZ"
MEMORY = 256 * 1024 * 1024


def read_packed(file: Path, most: int, written_by: str, *, whole: bool = True) -> bytes:
    """Return the content, unpacked. ``most``: bytes of it, unpacked; ``written_by``: the command that writes such
    files; ``whole``: one that is cut off is refused. Raises ScenarioError (usage)."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(most + 1)
        ended = True
        if raw.startswith(XZ):
            unpacker = lzma.LZMADecompressor(memlimit=MEMORY)
            raw = unpacker.decompress(raw, most + 1)
            ended = unpacker.eof
    except (lzma.LZMAError, OSError) as error:
        raise ScenarioError(f"{file}: cannot be read: {error}; {written_by} writes one", usage=True) from error
    if len(raw) > most:
        said = f"{file}: is larger than {most // 2**20} MiB; allowed: what {written_by} writes"
        raise ScenarioError(said, usage=True)
    if whole and not ended:
        raise ScenarioError(f"{file}: is cut off; copy it again", usage=True)
    return raw

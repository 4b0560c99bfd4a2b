"""Removes untrusted folder trees, also those deeper than the longest path or without permission to enter.

Used after commands of repositories and pods have ended.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(top: Path) -> None:
    """Remove ``top`` with its content as far as permitted; links are removed, not followed. Nested folders are moved to
    the top before they are emptied, so that no path grows too long."""
    with contextlib.suppress(OSError):
        base = os.open(top, _FOLDER)
        try:
            _empty(base)
        finally:
            os.close(base)
        os.rmdir(top)


def _empty(base: int) -> None:
    waiting, moved = ["."], 0
    while waiting:
        name = waiting.pop()
        here = os.open(name, _FOLDER, dir_fd=base)
        try:
            with os.scandir(here) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
            for each, folder in entries:
                if not folder:
                    os.unlink(each, dir_fd=here)
                    continue
                os.chmod(each, 0o700, dir_fd=here)
                if name == ".":
                    waiting.append(each)
                    continue
                moved += 1
                above = f".removed-{moved}"
                os.rename(each, above, src_dir_fd=here, dst_dir_fd=base)
                waiting.append(above)
        finally:
            os.close(here)
        if name != ".":
            os.rmdir(name, dir_fd=base)

"""Removes what strangers left on the disk: folders deeper than paths are long, or that cannot be entered.

Used where commands of repositories and pods have written, after they have ended.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["remove_tree"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(top: Path) -> None:
    """Remove ``top`` with all that is in it, as far as we may; links are removed, not followed. Folders are brought up
    before they are emptied, so that none is too deep."""
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

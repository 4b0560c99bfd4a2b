"""Reads the folder of an AnsibleConfig from a mirror of its repository; blocking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.assembly.sources.administered import read_administered
from syncline.machineconfig.ansible.content import MAX_BYTES, MAX_FILES, File
from syncline.machineconfig.ansible.examining import COLLECTIONS
from syncline.machineconfig.ansible.reading import Found, Wanted
from syncline.sources.errors import Problem, SourceError
from syncline.sources.sourcing import Sources
from syncline.sources.tree import Entry, Tree

EXECUTABLE: Final = "100755"


@dataclass(frozen=True, slots=True)
class Playbooks:
    """A :class:`~syncline.machineconfig.ansible.reading.PlaybookReader`."""

    sources: Sources

    def playbook(self, wanted: Wanted, now: datetime) -> Found:
        try:
            commit, files = read_administered(
                self.sources, wanted, wanted.path, now, lambda tree: files_of(tree, wanted)
            )
        except SourceError as error:
            return Found(now, error=str(error))
        return Found(now, commit, files=files)


def files_of(tree: Tree, wanted: Wanted) -> dict[str, File]:
    """Return the files below a tree's folder, of collections those that are named. Raises :class:`SourceError`."""
    base = f"{tree.path}/" if tree.path else ""
    named = tuple(f"{COLLECTIONS}/{name.replace('.', '/')}/" for name in wanted.collections)
    found: dict[str, Entry] = {}
    for entry in tree.entries:
        path = entry.path.removeprefix(base)
        if path.startswith(f"{COLLECTIONS}/") and not path.startswith(named):
            continue
        target = tree.follow(entry)
        if target is not None and target.is_file:
            found[path] = target
    size = sum(one.size for one in found.values())
    if len(found) > MAX_FILES or size > MAX_BYTES:
        raise SourceError(
            Problem.TOO_LARGE,
            f"{wanted} has {len(found)} files of {size} bytes; at most {MAX_FILES} of {MAX_BYTES} are read",
            field="spec.path",
            fix="name a smaller folder",
        )
    contents = tree.read(found.values())
    return {path: File(contents[one.path], one.mode == EXECUTABLE) for path, one in found.items()}

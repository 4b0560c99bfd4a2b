"""Collects the drain controller's notes about drains that cannot finish, for the pool's status; pure."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.kube.objects import Obj
from syncline.machineconfig.drain.progress import BlockedNote, would_help
from syncline.machineconfig.names import DESIRED_DRAIN
from syncline.machineconfig.pools.nodestate import facts_of_all

MAX_NAMED = 3
"""Nodes whose blocked drains are reported in full."""


def blocked_drains(nodes: Sequence[Obj]) -> tuple[BlockedNote, ...]:
    """Return the notes about currently requested drains, in the order of the nodes."""
    found: list[BlockedNote] = []
    for node, facts in zip(nodes, facts_of_all(nodes), strict=True):
        note = BlockedNote.of(node) if facts.blocked else None
        if note is not None and note.request == facts.readable.get(DESIRED_DRAIN):
            found.append(note)
    return tuple(found)


def chains(notes: Sequence[BlockedNote]) -> str:
    """Return the chains of causes of the drains; empty without notes."""
    message = "; ".join(note.message for note in notes[:MAX_NAMED])
    return message + (f"; and {len(notes) - MAX_NAMED} more nodes" if len(notes) > MAX_NAMED else "")


def sentence(notes: Sequence[BlockedNote]) -> str:
    """Return the chains and the fixes; drains of one pool mostly share fixes, so each is listed once."""
    return chains(notes) + would_help(dict.fromkeys(fix for note in notes[:MAX_NAMED] for fix in note.fixes))

"""How long the names of a pattern and its groups may be; pure. :func:`too_long`."""

from __future__ import annotations

from typing import Final

MOST: Final = 46
"""Letters: the host of a group's Argo CD holds the group twice and the pattern once, beside its own, and a label of a
host name has 63 (the patterns' ``validate-names-length``)."""


def too_long(pattern: str, group: str) -> str:
    """Return what is wrong with the names together, empty if nothing is."""
    length = 2 * len(group) + len(pattern)
    if length <= MOST:
        return ""
    return (
        f"global.pattern {pattern!r} and clusterGroup.name {group!r} are too long together: twice the group and once "
        f"the pattern are {length} letters, and at most {MOST} fit the host name of the group's Argo CD"
    )

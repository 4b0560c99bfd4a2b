"""What of a cluster was read: which kinds are listed, which are refused, and where. :class:`Reads`.

A kind is watched as a whole or namespace by namespace. A kind, or a namespace of it, that is refused is not empty: its
absence from the cache means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.kube.objects import GroupKind, ObjectRef


def _everything(_ref: ObjectRef) -> str:
    return ""


class Reads:
    """The state of the watches of one cache. ``space``: a namespace that is watched by itself; "": the whole kind."""

    def __init__(self) -> None:
        self.outside: Callable[[ObjectRef], str] = _everything
        """Returns why an object is in no part of the cluster that is watched; empty: it is."""
        self._synced: set[GroupKind] = set()
        self._refused: dict[GroupKind, dict[str, str]] = {}
        """By namespace, why."""
        self._awaited: dict[GroupKind, set[str]] = {}
        """Namespaces that were neither listed nor refused yet."""
        self._behind: dict[GroupKind, set[str]] = {}

    def expect(self, kind: GroupKind, spaces: Iterable[str]) -> None:
        """Declare the namespaces in which a kind is watched, each by itself; none: as a whole."""
        wanted = set(spaces)
        if wanted and kind not in self._synced:
            self._awaited.setdefault(kind, set()).update(wanted)

    def listed(self, kind: GroupKind, space: str) -> None:
        left = self._refused.get(kind)
        if left is not None and left.pop(space, None) is not None and not left:
            del self._refused[kind]
        self.behind(kind, False, space)
        self._settle(kind, space)

    def refused(self, kind: GroupKind, why: str, space: str) -> None:
        self._refused.setdefault(kind, {})[space] = why
        if space:
            self._settle(kind, space)

    def _settle(self, kind: GroupKind, space: str) -> None:
        left = self._awaited.get(kind, set())
        left.discard(space)
        if not left:
            self._awaited.pop(kind, None)
            self._synced.add(kind)

    def behind(self, kind: GroupKind, behind: bool, space: str) -> None:
        """Record that a watch failed, or works again."""
        if behind:
            self._behind.setdefault(kind, set()).add(space)
        elif kind in self._behind:
            self._behind[kind].discard(space)

    def forget(self, kind: GroupKind) -> None:
        self._synced.discard(kind)
        for noted in (self._refused, self._awaited, self._behind):
            noted.pop(kind, None)

    def has_synced(self, kind: GroupKind) -> bool:
        """Return whether a kind was listed wherever it is watched, but for single namespaces that are refused."""
        return kind in self._synced and "" not in self._refused.get(kind, ())

    def settled(self, kind: GroupKind) -> bool:
        """Return whether a kind was listed or refused, wherever it is watched."""
        return kind in self._synced or "" in self._refused.get(kind, ())

    def why_unread(self, ref: ObjectRef) -> str:
        """Return why an object, or without a name all of its kind in its namespace, cannot be read; empty if it can."""
        why = self._refused.get(ref.group_kind)
        if why:
            found = why.get("") or (why.get(ref.namespace, "") if ref.namespace else next(iter(why.values())))
            if found:
                return found
        return self.outside(ref)

    @property
    def whole(self) -> bool:
        """Whether everything can be read."""
        return not self._refused and self.outside is _everything

    def follows(self, kind: GroupKind) -> bool:
        return kind in self._synced and not self._behind.get(kind)

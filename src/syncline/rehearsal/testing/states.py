"""Whether objects are as a scenario wants them, at one time: :class:`Wanting`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeAlias

from syncline.kube.objects import Obj, ObjectRef
from syncline.rehearsal.answer.condition import MAX_STEPS
from syncline.rehearsal.paths import value_at
from syncline.rehearsal.testing.case import State

SHORT = {"app": "application", "appset": "applicationset", "pool": "machineconfigpool", "mc": "machineconfig"}
Seen: TypeAlias = "tuple[Obj, Obj | None, float]"
"""An object that is there, its version before, and when it became so, in seconds since the commit."""


@dataclass
class Wanting:
    """A state that is looked at, with the steps that its expression may still take."""

    wanted: State
    left: list[int] = field(default_factory=lambda: [MAX_STEPS])

    def __post_init__(self) -> None:
        kind, *space, self._name = self.wanted.target.split("/")
        self._kind = SHORT.get(kind.lower(), kind.lower())
        self._space = space[0] if space else "*"

    def names(self, ref: ObjectRef) -> bool:
        """Return whether the state is about an object."""
        same = ref.kind.lower() == self._kind and fnmatchcase(ref.name, self._name)
        return same and fnmatchcase(ref.namespace, self._space)

    def wrong(self, there: Mapping[ObjectRef, Seen]) -> str:
        """Return what is not as it is wanted, of the objects that are named and there; empty if all is."""
        wanted = self.wanted
        if wanted.absent:
            return f"{shown(min(there))} is there" if there else ""
        if not there and wanted.count is None:
            return f"there is no {wanted.target}"
        wrong = [(ref, why) for ref, seen in sorted(there.items()) if (why := self._why(*seen))]
        if wanted.count is not None:
            fit = len(there) - len(wrong)
            detail = f"; {shown(wrong[0][0])}: {wrong[0][1]}" if wrong else ""
            return "" if fit == wanted.count else f"{fit} are so, not {wanted.count}{detail}"
        return f"{shown(wrong[0][0])}: {wrong[0][1]}" if wrong else ""

    def _why(self, obj: Obj, before: Obj | None, at_s: float) -> str:
        for path, value in self.wanted.fields.items():
            found = value_at(obj, path)
            if found != value or isinstance(found, bool) != isinstance(value, bool):  # True is no 1 here
                return f"{path} is {'not there' if found is None else repr(found)}, not {value!r}"
        if self.wanted.condition is None:
            return ""
        values: Obj = {"object": obj, "before": before, "gone": False, "at": at_s}
        why = self.wanted.condition.broken(values, self.left)
        return f"{self.wanted.condition.text} is false" if why == "breaks the law" else why


def shown(ref: ObjectRef) -> str:
    return "/".join(filter(None, (ref.kind, ref.namespace, ref.name)))

"""The types of resource actions: offers, effects and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from syncline.kube.objects import Obj


class ActionFailed(RuntimeError):
    """The action refuses or cannot run; the text is for the user who requested it."""


class Verb(StrEnum):
    PATCH = "patch"
    """Patch the object to :attr:`Effect.obj`."""
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class Effect:
    verb: Verb
    obj: Obj


@dataclass(frozen=True, slots=True)
class Offer:
    """One action that an object offers. ``icon``: a CSS class; ``params``: names of text parameters."""

    name: str
    disabled: bool = False
    icon: str = ""
    display: str = ""
    params: tuple[str, ...] = ()

    def to_obj(self) -> Obj:
        """Return the form of argocd's responses, without empty fields."""
        shown: Obj = {"name": self.name, "disabled": self.disabled}
        shown |= {"iconClass": self.icon} if self.icon else {}
        shown |= {"displayName": self.display} if self.display else {}
        return shown | ({"params": [{"name": name} for name in self.params]} if self.params else {})


Discover: TypeAlias = Callable[[Obj], tuple[Offer, ...]]
Act: TypeAlias = Callable[[Obj, Mapping[str, str], datetime], tuple[Effect, ...]]
"""The live object (never changed), parameters, now → the writes. Raises :class:`ActionFailed`."""


@dataclass(frozen=True, slots=True)
class ActionKind:
    """All actions of one kind."""

    discover: Discover
    acts: Mapping[str, Act]

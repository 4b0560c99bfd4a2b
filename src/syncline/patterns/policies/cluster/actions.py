"""The actions of a cluster's policies, as data, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from syncline.base.action import Action
from syncline.kube.objects import GroupKind, Obj, name_of, namespace_of
from syncline.patterns.policies.cluster.reasons import Verdict


class Tracked(NamedTuple):
    """What an evaluation read: an object, or (``name`` empty) all of a kind, in a namespace or everywhere."""

    kind: GroupKind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Evaluate(Action):
    """Look at everything that a ConfigurationPolicy names and, if it is enforced, make it so."""

    policy: Obj = field(repr=False)
    now: datetime
    reason: str
    hold: bool = False
    """Missing objects are not made yet: first their policy notes that it is about to."""

    def describe(self) -> str:
        return f"evaluate ConfigurationPolicy/{namespace_of(self.policy)}/{name_of(self.policy)}"


@dataclass(frozen=True, slots=True)
class TemplateResult:
    """The states of one object template, in order of time; none: it was not evaluated."""

    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation found.

    ``whole``: the one state of the policy, in place of those of its templates. ``related``: objects, None if they stay
    as they are. ``settled``: what is not related any more may be pruned. ``again_s``: seconds until it is tried again
    whatever happens, 0: not before something changes; ``lasts``: only a change of the policy helps. ``held``: objects
    are still to be made.
    """

    templates: tuple[TemplateResult, ...] = ()
    whole: Verdict | None = None
    related: tuple[Obj, ...] | None = field(default=None, repr=False)
    settled: bool = True
    again_s: float = 0.0
    lasts: bool = False
    held: bool = False
    tracked: frozenset[Tracked] = frozenset()


@dataclass(frozen=True, slots=True)
class Prune(Action):
    """Delete objects that a policy has brought, or (``every``) all that it names. ``related``: entries of its
    status."""

    related: tuple[Obj, ...] = field(repr=False)
    every: bool
    reason: str

    def describe(self) -> str:
        return f"prune {len(self.related)} objects"


@dataclass(frozen=True, slots=True)
class Pruned:
    """``left``: what could not be deleted, in upstream's words; ``entries``: the same as entries of the status."""

    left: tuple[str, ...] = ()
    entries: tuple[Obj, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class FollowKinds(Action):
    """Watch the metadata of these kinds for policies, and of no others."""

    kinds: frozenset[GroupKind]
    reason: str

    def describe(self) -> str:
        return f"follow {len(self.kinds)} kinds for policies"

"""Performs :class:`Operate`: looks at what OLM has of an operator, and makes it as its policy says.

A refusal is data: what was found until then is reported, and the policy is looked at again. Where the cluster does not
answer, the error is raised and nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from syncline.base.action import Action
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.patterns.policies.cluster.actions import Tracked
from syncline.patterns.policies.cluster.concluding import News
from syncline.patterns.policies.cluster.reading import AWAY, Access, TooMany
from syncline.patterns.policies.operators.approving import handle_plans
from syncline.patterns.policies.operators.building import wanted_of
from syncline.patterns.policies.operators.installing import (
    copied_version,
    handle_elsewhere,
    handle_group,
    handle_subscription,
)
from syncline.patterns.policies.operators.looking import Look, Steps
from syncline.patterns.policies.operators.outcome import (
    handle_catalog,
    handle_definitions,
    handle_deployments,
    handle_packages,
    handle_version,
)
from syncline.patterns.policies.operators.report import Report

RETRY_S: Final = 10.0
"""Seconds until what failed is tried again."""


@dataclass(frozen=True, slots=True)
class Operate(Action):
    """Look at an operator and, if its policy is enforced, install or remove it."""

    policy: Obj = field(repr=False)
    now: datetime
    reason: str

    def describe(self) -> str:
        return f"evaluate OperatorPolicy/{namespace_of(self.policy)}/{name_of(self.policy)}"


@dataclass(frozen=True, slots=True)
class Operated:
    """``error``: what kept the rest from being looked at; ``again_s``: seconds until it is tried again, 0: not before
    something changes; ``waits``: what for."""

    status: Obj = field(repr=False)
    news: tuple[News, ...] = ()
    again_s: float = 0.0
    error: str = ""
    tracked: frozenset[Tracked] = frozenset()
    waits: str = "its package is not known yet"


class OperateHandler:
    """Performs :class:`Operate`. ``note``: called with a policy and what it is about to read."""

    def __init__(self, mapper: Mapper, note: Callable[[ObjectRef, Tracked], None]) -> None:
        self._mapper, self._note = mapper, note

    def handle(self, action: Operate) -> Generator[Any, Any, Operated]:
        policy = action.policy
        access = Access(self._mapper, note=partial(self._note, ref_of(policy)))
        look = Look(policy, action.now, access, Report(policy, action.now), policy.get("spec") or {})
        error = ""
        try:
            yield from _all(look)
        except AWAY:
            raise
        except (ApiError, TooMany) as found:
            error, look.again_s = str(found), RETRY_S
        news = look.report.concluded()
        return Operated(look.report.status, news, look.again_s, error, frozenset(access.tracked))


def _all(look: Look) -> Steps:
    wanted, group, manifest = yield from wanted_of(look)
    if look.again_s:
        return
    if wanted is not None and group is not None and not look.unwanted and not dig(group, "spec", "targetNamespaces"):
        copy = yield from copied_version(look, wanted)
        if copy is not None:
            yield from handle_elsewhere(look, wanted, copy, manifest)
            return
    correct = yield from handle_group(look, group, name_of(wanted) if wanted else "")
    found = yield from handle_subscription(look, wanted, correct)
    yield from handle_plans(look, found)
    version = yield from handle_version(look, found)
    handle_packages(look, found, name_of(version) if version else "", manifest)
    yield from handle_definitions(look, found)
    yield from handle_deployments(look, version)
    yield from handle_catalog(look, found)

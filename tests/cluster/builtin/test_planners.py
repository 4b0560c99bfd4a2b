"""What every planner of a built-in controller keeps to, checked at each of its plans while the stories are played.

It changes nothing that it is given; the same observation gives the same plan; the order of what it sees does not
matter; and when everything is calm it has nothing more to do.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from tests.cluster.builtin.stories import STORIES, a_world, simulate
from tests.cluster.world import World

from syncline.cluster.builtin import builtin_controllers
from syncline.cluster.builtin.actions import ConfirmAbsent, ConfirmEmpty, FindScale, ReadScale
from syncline.control.controller import Controller
from syncline.control.plan import Emit, Plan
from syncline.kube.objects import GroupKind, ref_of

LOOKS = (Emit, ConfirmAbsent, ConfirmEmpty, FindScale, ReadScale)
"""Actions that change no object."""


MAPPINGS = ("claims", "scales", "foreign", "zones")
"""Fields of observations that are mappings by name; other dicts are objects."""
CHOOSES = ("scheduler",)
"""Any of several equal nodes is right, so the order may decide."""


def changes(plan: Plan) -> list[str]:
    """What a plan would change, in any order."""
    return sorted(repr(action) for action in plan.actions if not isinstance(action, LOOKS))


def backwards(observed: Any) -> Any:
    """The same observation with its collections in the opposite order."""
    if not dataclasses.is_dataclass(observed) or isinstance(observed, type):
        return observed
    turned: dict[str, Any] = {}
    for field in dataclasses.fields(observed):
        value = getattr(observed, field.name)
        if isinstance(value, tuple) and value and all(isinstance(each, dict) for each in value):
            turned[field.name] = value[::-1]
        elif isinstance(value, dict) and field.name in MAPPINGS:
            turned[field.name] = dict(reversed(list(value.items())))
    return dataclasses.replace(observed, **turned)


class Checked:
    """A controller each plan of which is checked."""

    def __init__(self, inner: Controller[Any]) -> None:
        self.inner = inner
        self.plans = 0
        self.controller = dataclasses.replace(
            inner, plan=self.plan, predicate=None, urgent=None, at_rest=None, debounce_s=0.0
        )

    def plan(self, observed: Any, now: datetime) -> Plan:
        self.plans += 1
        before, name = copy.deepcopy(observed), self.inner.name
        made = self.inner.plan(observed, now)
        assert observed == before, f"{name} changed what it was given"
        assert changes(self.inner.plan(before, now)) == changes(made), f"{name} planned twice, differently"
        if name not in CHOOSES:
            turned = self.inner.plan(backwards(before), now)
            assert changes(turned) == changes(made), f"{name} minds the order"
        return made


def left_to_do(world: World, checked: list[Checked]) -> Iterator[str]:
    for each in checked:
        kinds = (
            [each.inner.kind]
            if each.inner.name != "garbage-collector"
            else [GroupKind("", "ConfigMap"), GroupKind("", "Pod")]
        )
        for kind in kinds:
            for obj in world.loop.cache.objects(kind):
                observed = each.inner.observe(world.loop.cache, ref_of(obj))
                if observed is not None and (left := changes(each.inner.plan(observed, world.clock.now()))):
                    yield f"{each.inner.name} {ref_of(obj)}: {left}"


@pytest.mark.parametrize("name", STORIES)
def test_planners_are_pure_mind_no_order_and_come_to_rest(name: str) -> None:
    checked: list[Checked] = []
    world = a_world()
    checked += [Checked(each) for each in builtin_controllers(world._settings())]
    world._controllers = [each.controller for each in checked]
    world.restart()
    world.settle()
    simulate(world, STORIES[name])
    assert list(left_to_do(world, checked)) == []
    assert sum(each.plans for each in checked) > 3

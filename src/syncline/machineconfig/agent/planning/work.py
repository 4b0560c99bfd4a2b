"""What an update from one rendered config to another means for a node; pure.

Asked by the agent when it is about to do it, and by ``machineconfig/impact`` before anybody has decided to: both
answers come from here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.actions import Action, Consequence, consequences, drain_needed, update_actions
from syncline.machineconfig.agent.planning.changes import (
    Changes,
    changed_files,
    changed_units,
    changes_between,
    config_of,
)
from syncline.machineconfig.configs.reconcile import unreconcilable

__all__ = ["Irreconcilable", "Work", "work_of"]

FIPS = "detected change to FIPS flag; refusing to modify FIPS on a running cluster"


class Irreconcilable(ValueError):
    """The node cannot take the config on in place; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Work:
    """``actions`` follow the writing, in order; ``drain``: the node is drained before. ``parts``: which change asks for
    what."""

    changes: Changes
    actions: tuple[Action, ...]
    drain: bool
    parts: tuple[Consequence, ...] = ()


def work_of(
    old: Obj, new: Obj, policies: Obj, waived: Collection[str] = (), *, forced: bool = False, fips: bool | None = None
) -> Work:
    """``policies``: the effective ones. ``fips``: what the machine runs with, where that is known.

    Raises ConfigError for configs that cannot be read, Irreconcilable, and RegistriesError for a registries.conf that
    is none.
    """
    changes_between(old, new)
    refusal = unreconcilable(old, [new], waived)
    if refusal is not None:
        raise Irreconcilable(f"configs {name_of(old)}, {name_of(new)} are not reconcilable: {refusal}")
    if fips is not None and fips != bool(dig(new, "spec", "fips")):
        raise Irreconcilable(FIPS)
    changes = changes_between(old, new, forced=forced)
    before, after = config_of(old), config_of(new)
    files, units = changed_files(before, after), changed_units(before, after)
    actions = update_actions(changes, files, units, policies)
    parts = consequences(changes, files, units, policies)
    return Work(changes, tuple(actions), drain_needed(actions, before, after), tuple(parts))

"""Computes what an update from one rendered config to another does to a node; pure. Entry point: :func:`work_of`.

Both the agent, before an update, and the forecast in ``machineconfig/impact`` use it.
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

FIPS = "detected change to FIPS flag; refusing to modify FIPS on a running cluster"


class Irreconcilable(ValueError):
    """The node cannot take the config in place; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an update. ``actions`` run after the writing, in order; ``drain``: the node is drained first.
    ``parts``: which change needs which actions."""

    changes: Changes
    actions: tuple[Action, ...]
    drain: bool
    parts: tuple[Consequence, ...] = ()


def work_of(
    old: Obj, new: Obj, policies: Obj, waived: Collection[str] = (), *, forced: bool = False, fips: bool | None = None
) -> Work:
    """Return the work of an update. ``policies``: the effective ones. ``fips``: the machine's mode, if known.

    Raises ConfigError for unreadable configs, Irreconcilable, and RegistriesError for a bad registries.conf.
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

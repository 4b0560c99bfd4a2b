"""Computes what an update from one rendered config to another does to a node; pure. Entry point: :func:`work_of`.

Both the agent, before an update, and the forecast in ``machineconfig/impact`` use it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.actions import (
    NONE,
    REBOOT,
    Action,
    Consequence,
    consequences,
    drain_needed,
    update_actions,
)
from syncline.machineconfig.agent.planning.changes import (
    Changes,
    changed_files,
    changed_units,
    changes_between,
    config_of,
)
from syncline.machineconfig.ansible import play as plays
from syncline.machineconfig.ansible.journal import Journal, plays_due
from syncline.machineconfig.ansible.play import Play, is_of_plays, plays_of
from syncline.machineconfig.configs.reconcile import unreconcilable

FIPS = "detected change to FIPS flag; refusing to modify FIPS on a running cluster"


class Irreconcilable(ValueError):
    """The node cannot take the config in place; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an update. ``actions`` run after the writing, in order; ``drain``: the node is drained first.
    ``parts``: which change needs which actions. ``plays``: what Ansible runs before the actions."""

    changes: Changes
    actions: tuple[Action, ...]
    drain: bool
    parts: tuple[Consequence, ...] = ()
    plays: tuple[Play, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """What a node's disk records of plays, and the boot in which it is."""

    journal: Journal
    boot_id: str


def work_of(
    old: Obj,
    new: Obj,
    policies: Obj,
    waived: Collection[str] = (),
    *,
    forced: bool = False,
    fips: bool | None = None,
    played: Played | None = None,
) -> Work:
    """Return the work of an update. ``policies``: the effective ones. ``fips``: the machine's mode, if known;
    ``played``: what it ran, else as ``old`` says.

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
    files = [path for path in files if not is_of_plays(path)]
    actions = update_actions(changes, files, units, policies) or [NONE]
    parts = consequences(changes, files, units, policies)
    drain = drain_needed(actions, before, after)
    due, disturbing = _plays(old, new, played)
    parts += [_consequence(play) for play in disturbing]
    heaviest = plays.heaviest([play.disruption for play in disturbing])
    owed = played is not None and any(played.journal.owes_boot(play, played.boot_id) for play in disturbing)
    if heaviest == plays.REBOOT or owed:
        actions = [REBOOT]
    return Work(changes, tuple(actions), drain or owed or heaviest != plays.NONE, tuple(parts), due)


def _plays(old: Obj, new: Obj, played: Played | None) -> tuple[tuple[Play, ...], list[Play]]:
    """Return the plays that run, and those whose disruption counts: they run, have run in this update, or still need a
    reboot."""
    try:
        wanted = plays_of(new)
        before = {play.name: play.digest for play in plays_of(old)} if wanted else {}
    except ValueError as error:
        raise Irreconcilable(str(error)) from None
    changed = [play for play in wanted if before.get(play.name) != play.digest]
    if played is None:
        return tuple(changed), changed
    due = plays_due(wanted, played.journal)
    owing = [play for play in wanted if played.journal.owes_boot(play, played.boot_id)]
    return due, [play for play in wanted if play in due or play in changed or play in owing]


def plays_left(config: Obj | None, played: Played) -> Sequence[Play]:
    """Return the plays of a config that still have to run on a node, or to be followed by a reboot. Raises
    ValueError."""
    found = plays_of(config)
    return [one for one in found if not played.journal.applied(one) or played.journal.owes_boot(one, played.boot_id)]


def _consequence(play: Play) -> Consequence:
    actions = {plays.REBOOT: (REBOOT,), plays.DRAIN: (Action("Drain"),)}.get(play.disruption, (NONE,))
    return Consequence(ANSIBLE_CONFIG.kind, play.name, actions, play.what)

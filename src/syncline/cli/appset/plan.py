"""``syncline plan appset/NAME``: what the next reconcile of a set does, by the controller's own functions.

``cli/plan.py`` calls :func:`plan_sets` for a target or a file of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.assembly.inspection.preview import PlannedSync
from syncline.assembly.inspection.setplan import PlannedApplication, PlannedSet, SetVerb
from syncline.assembly.inspection.sets import planned_set
from syncline.cli.appset.files import read_sets
from syncline.cli.appset.rows import rows
from syncline.cli.appset.stage import Stage, as_stored, staged, stored
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.pull.names import is_carried
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.objects import Obj, ObjectRef, ref_of

if TYPE_CHECKING:
    from syncline.assembly.inspection.order import PlannedOrder

WORDS = ("appset", "appsets", "applicationset", "applicationsets")
MAX_PLANS = 100
"""Applications whose own plan is made; each is rendered."""
OwnPlan = Callable[[Stage, Obj], PlannedSync]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is planned: the stored set at ``ref``, the sets of ``file``, or ``ref`` as ``file`` has it."""

    ref: ObjectRef | None
    file: Path | None
    folder: Path | None
    """Stands for the repositories of Git generators."""
    against: str | None
    namespace: str
    kubeconfig: str | None
    context: str | None


def set_ref(target: str | None, namespace: str) -> ObjectRef | None:
    """Parse ``appset/fleet`` or ``appset/team/fleet``; None for any other target. Raises CommandFailed."""
    kind, _, rest = (target or "").partition("/")
    if kind.lower() not in WORDS:
        return None
    space, _, name = rest.rpartition("/")
    if not name or "/" in space:
        raise CommandFailed(f"{target!r} names no ApplicationSet; write appset/NAME or appset/NAMESPACE/NAME", USAGE)
    return ObjectRef(*APPLICATION_SET.group_kind, space or namespace, name)


def rollout_ref(target: str | None, namespace: str) -> ObjectRef | None:
    """Parse ``rollout/shop`` or ``rollout/team/shop.app``; None for any other target. Raises CommandFailed."""
    kind, _, rest = (target or "").partition("/")
    if kind.lower() not in ("rollout", "fleetrollout"):
        return None
    space, _, name = rest.rpartition("/")
    if not name or "/" in space:
        raise CommandFailed(f"{target!r} names no roll-out; write rollout/NAME or rollout/NAMESPACE/NAME", USAGE)
    return ObjectRef(*ROLLOUT.group_kind, space or namespace, name)


def holds_sets(file: Path) -> bool:
    """Return whether a file has an object of kind ApplicationSet."""
    from syncline.kube.yaml.loading import load_all

    documents = load_all(file.read_bytes(), file=str(file)).documents
    return any(isinstance(one.value, dict) and one.value.get("kind") == APPLICATION_SET.kind for one in documents)


def plan_sets(wanted: Wanted, own: OwnPlan | None, *, everything: bool) -> list[tuple[PlannedSet, PlannedOrder | None]]:
    """Return the plans, each with the order over clusters that its Applications would take. ``own`` plans the next sync
    of an Application; ``everything``: of unchanged ones too."""
    found = []
    with ExitStack() as stack:
        space = wanted.ref.namespace if wanted.ref is not None else wanted.namespace
        stage = stack.enter_context(staged(wanted.against, space, wanted.kubeconfig, wanted.context))
        for one in _sets(stage, wanted):
            with rows(stage, wanted.folder) as ask:
                planned = planned_set(stage.cache, one, stage.control, ask, stage.now)
            order = _order(stage, ref_of(one), planned, one)
            found.append((planned if own is None else _with_own(stage, planned, own, everything), order))
    return found


def _order(stage: Stage, ref: ObjectRef, planned: PlannedSet, appset: Obj) -> PlannedOrder | None:
    """Return the order over clusters of the Applications that clusters pull; None if there is none."""
    apps = (one.wanted or stage.cache.get(one.ref) for one in planned.applications)
    if not any(app is not None and is_carried(app) for app in apps):
        return None
    from syncline.assembly.inspection.order import order_cache, planned_order

    rollout = ObjectRef(*ROLLOUT.group_kind, ref.namespace, ref.name)
    try:
        return planned_order(order_cache(stage.cache), rollout, stage.now, planned, appset)
    except ValueError as error:
        click.echo(f"warning: {error}", err=True)
        return None


def plan_rollout(wanted: Wanted) -> PlannedOrder | None:
    """Return the order of the group of a FleetRollout; None if none is in force. Raises CommandFailed."""
    from syncline.assembly.inspection.order import order_cache, planned_order

    assert wanted.ref is not None, "a target names it"
    with staged(wanted.against, wanted.ref.namespace, wanted.kubeconfig, wanted.context) as stage:
        try:
            return planned_order(order_cache(stage.cache), wanted.ref, stage.now)
        except ValueError as error:
            raise CommandFailed(str(error)) from error


def _sets(stage: Stage, wanted: Wanted) -> Iterator[Obj]:
    if wanted.file is None:
        assert wanted.ref is not None, "one of them is given"
        yield stored(stage, wanted.ref)
        return
    read = read_sets(str(wanted.file), wanted.ref.namespace if wanted.ref is not None else wanted.namespace)
    chosen = [one for one in read if wanted.ref is None or ref_of(one) == wanted.ref]
    if not chosen:
        names = ", ".join(f"{ref_of(one).namespace}/{ref_of(one).name}" for one in read)
        raise CommandFailed(
            f"{wanted.file} has no ApplicationSet {wanted.ref.name if wanted.ref else ''}; it has {names}"
        )
    for one in chosen:
        yield as_stored(stage, one)


def _with_own(stage: Stage, planned: PlannedSet, own: OwnPlan, everything: bool) -> PlannedSet:
    verbs = [SetVerb.CREATE, SetVerb.CHANGE, SetVerb.ADOPT, *([SetVerb.UNCHANGED] if everything else [])]
    chosen = [one.ref for one in planned.applications if one.verb in verbs][:MAX_PLANS]
    return replace(planned, applications=tuple(_each(stage, planned.applications, chosen, own)))


def _each(
    stage: Stage, applications: Sequence[PlannedApplication], chosen: Sequence[ObjectRef], own: OwnPlan
) -> Iterator[PlannedApplication]:
    for one in applications:
        wanted = one.wanted if one.ref in chosen else None
        yield replace(one, own=own(stage, wanted)) if wanted is not None else one

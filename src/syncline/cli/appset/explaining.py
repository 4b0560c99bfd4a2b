"""Explains sets for ``syncline explain`` and ``app get``: the plan of a set, joined with its Applications."""

from __future__ import annotations

from collections.abc import Callable

from syncline.appset.questions import Answer, Question
from syncline.assembly.inspection.setplan import PlannedSet
from syncline.assembly.inspection.sets import Rows, generated_set, planned_set
from syncline.base.cause import Cause
from syncline.cli.access.connection import Connection
from syncline.cli.appset.rows import rows
from syncline.cli.appset.stage import Stage
from syncline.control.cache import Cache
from syncline.explain.applicationset import explain_set, made_by
from syncline.explain.fleet.rollouts import rollout_of, with_rollout
from syncline.explain.fleet.setreport import set_report
from syncline.explain.view import Found, View
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, name_of, namespace_of


def explained_set(
    link: Connection, view: View, cache: Cache, found: Obj, control: str, application: Callable[[ObjectRef], Found]
) -> Found:
    """Explain a set. ``application`` explains an Application that is in ``cache``."""

    def below(name: str) -> Found | None:
        ref = ObjectRef(*APPLICATION.group_kind, namespace_of(found), name)
        return application(ref) if cache.get(ref) is not None else None

    rows = set_report(view, found, control).rows
    carried = [one for one in rows if one.pulled or one.app is None]
    made = explain_set(view, found, _planned(link, cache, found, control), below, carried)
    return with_rollout(view, made, rollout_of(view, namespace_of(found), name_of(found)))


def origin(link: Connection, cache: Cache, owner: ObjectRef, name: str, control: str) -> Cause:
    """Return from which row of ``owner`` an Application comes. Reads what the generators of the set read."""
    found = cache.get(owner)
    if found is None:
        text = cache.unread(owner) or "it does not exist any more"
        return Cause(f"ApplicationSet {owner.namespace}/{owner.name}", "controls it", text)
    return made_by(_planned(link, cache, found, control), name)


def origin_at_hand(link: Connection, cache: Cache, owner: ObjectRef, name: str, control: str) -> str:
    """Return the row of ``owner`` that makes an Application if objects of the API alone say it; else an empty text."""
    found, now = cache.get(owner), link.now()
    if found is None:
        return ""

    def refuse(_question: Question) -> Answer:
        return Answer(now, error="this command asks nothing outside the API")

    generated = generated_set(cache, found, control, refuse, now)
    made = (one.row for one in generated.made if name_of(one.app) == name)
    return next((str(Rows(generated).origin(row)) for row in made), "")


def _planned(link: Connection, cache: Cache, found: Obj, control: str) -> PlannedSet:
    stage = Stage(link, cache, control, link.now())
    with rows(stage, None) as ask:
        return planned_set(cache, found, control, ask, stage.now)

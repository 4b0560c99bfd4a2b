"""What of an Application travels while its content is on its way; pure.

The copy of the cluster names the version of its content that was rendered for exactly its sources. Until the hub has
rendered new sources, the copy keeps the old ones with the old version; before the first version nothing travels.
Under an order the copy stays as it is until then: the name of a release never stands on the content of another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from syncline.argo.application import REFRESH, AppView
from syncline.argo.content.entries import asked_for, entries_of
from syncline.argo.content.names import RENDERED, wants_content
from syncline.control.plan import Create, Plan, Replace
from syncline.fleet.pull.propagation import AppObserved
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, is_terminating, meta

_SOURCES: Final = ("source", "sources", "sourceHydrator")
WAITS: Final = "it travels when the hub has rendered its content"


def carried_app(app: Obj) -> Obj:
    """Return the Application as it travels: a refresh is for the hub, which renders."""
    if not wants_content(app) or REFRESH not in annotations_of(app):
        return app
    annotations = {key: value for key, value in annotations_of(app).items() if key != REFRESH}
    return {**app, "metadata": {**meta(app), "annotations": annotations}}


def with_content(plan: Plan, seen: AppObserved, content: Obj | None) -> Plan:
    """Return the plan of an Application, with the version of its content in what travels."""
    if not wants_content(seen.app) or is_terminating(seen.app) or not any(map(_carries, plan.actions)):
        return plan
    copy = next(one for action in plan.actions if _carries(action) for one in _of(action))
    view = AppView(copy)
    asked = asked_for(view.sources, view.revisions_wanted)
    for entry in entries_of(content):
        versions = tuple(entry.get("requested") or ()), tuple(entry.get("revisions") or ())
        if entry.get("sources") == asked.sources and asked.requested in versions:
            return _changed(plan, str(entry["digest"]), {})
    live = next(iter(applications_in(seen.work or {})), None)
    before = annotations_of(live or {}).get(RENDERED)
    if live is None or not before or seen.permit is not None:
        return Plan(why=WAITS)
    spec = live.get("spec") or {}
    return _changed(plan, before, {key: spec.get(key) for key in _SOURCES})


def _changed(plan: Plan, digest: str, sources: Obj) -> Plan:
    steps = tuple(tuple(_with(one, digest, sources) if _carries(one) else one for one in step) for step in plan.steps)
    return replace(plan, steps=steps)


def _carries(action: Any) -> bool:
    return bool(_of(action))


def _of(action: Any) -> list[Obj]:
    return applications_in(action.obj) if isinstance(action, Create | Replace) else []


def applications_in(work: Obj) -> list[Obj]:
    """Return the Applications among the manifests of a work."""
    manifests = dig(work, "spec", "workload", "manifests") or ()
    return [one for one in manifests if one.get("kind") == APPLICATION.kind]


def _with(action: Any, digest: str, sources: Obj) -> Any:
    work = action.obj
    manifests = [
        _named(one, digest, sources) if one.get("kind") == APPLICATION.kind else one
        for one in work["spec"]["workload"]["manifests"]
    ]
    return replace(action, obj={**work, "spec": {**work["spec"], "workload": {"manifests": manifests}}})


def _named(app: Obj, digest: str, sources: Obj) -> Obj:
    annotations = {**annotations_of(app), RENDERED: digest}
    kept = {key: value for key, value in (app.get("spec") or {}).items() if not sources or key not in _SOURCES}
    spec = {**kept, **{key: value for key, value in sources.items() if value is not None}}
    return {**app, "metadata": {**app["metadata"], "annotations": annotations}, "spec": spec}

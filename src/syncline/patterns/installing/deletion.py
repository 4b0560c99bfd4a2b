"""Taking a pattern down, in phases: children on spokes, parents on spokes, children on the hub, the parent; pure.

Only with the annotation :data:`~syncline.patterns.installing.pattern.PRUNE`; without it everything stays. Facts:
validatedpatterns/patterns-operator 1bf5a2c3, ``finalizeObject``. Upstream asks ACM's search service whether spokes are
empty; here a hub without managed clusters is, and one with some waits for a person; the error names what to look at.
"""

from __future__ import annotations

from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Delete, Replace
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.validatedpatterns import CONSOLE_LINK
from syncline.kube.objects import Obj, annotations_of, dig, name_of, uid_of
from syncline.patterns.installing.application import application_differs, parent_application, replaced
from syncline.patterns.installing.observe import PatternObserved
from syncline.patterns.installing.steps import DELETING_S, Step

SPOKE_CHILDREN, SPOKE = "DeleteSpokeChildApps", "DeleteSpoke"
HUB_CHILDREN, HUB = "DeleteHubChildApps", "DeleteHub"
SPOKES_EMPTY: Final = "syncline.dev/spokes-empty"
"""Annotation of a Pattern that is being deleted: ``true``, a person has looked that no spoke has its Applications."""
SOON_S: Final = 5.0


def deletion_step(observed: PatternObserved) -> Step | None:
    """Return the next step; None: nothing is left, and the finalizer may go."""
    app = observed.get("application")
    if not observed.pattern.prunes or app is None:
        return None
    phase = observed.pattern.status("deletionPhase")
    wanted = parent_application(observed.pattern, observed.checkout, observed.places)
    match phase:
        case "" if observed.is_hub:
            return _next(SPOKE_CHILDREN, "initialized deletion phase, requeueing now")
        case "":
            return _next(HUB_CHILDREN, "initialized deletion phase, requeueing now")
        case "DeleteSpokeChildApps":
            return _spoke(observed, app, wanted, "spoke child deletion", prune_children=False) or _next(
                SPOKE, "all child applications are gone, transitioning to DeleteSpoke phase"
            )
        case "DeleteSpoke":
            return _spoke(observed, app, wanted, "spoke app of apps deletion", prune_children=True) or _next(
                HUB_CHILDREN, "app of apps are gone from spokes, transitioning to DeleteHubChildApps phase"
            )
        case "DeleteHubChildApps":
            return _hub(observed, app, wanted) or _next(HUB, "apps are gone from hub, transitioning to DeleteHub phase")
        case "DeleteHub":
            return _last(observed, app)
        case _:
            return Step("finalize", error=f"status.deletionPhase: found {phase!r}", after_s=DELETING_S)


def _next(phase: str, error: str) -> Step:
    return Step("finalize", error=error, phase=phase, after_s=0.0)


def _spoke(observed: PatternObserved, app: Obj, wanted: Obj, what: str, *, prune_children: bool) -> Step | None:
    """The parent and its children are synced with the phase; then the spokes have to be empty."""
    changed = _changed(app, wanted, what)
    if changed is not None:
        return changed
    syncs = [
        *_synced(app, prune=False),
        *(one for child in observed.children for one in _synced(child, prune_children)),
    ]
    if syncs:
        return Step("finalize", tuple(syncs), error=f"syncing the applications for {what}", after_s=SOON_S)
    if not observed.clusters or annotations_of(observed.read).get(SPOKES_EMPTY) == "true":
        return None
    named = ", ".join(observed.clusters[:5]) + (" …" if len(observed.clusters) > 5 else "")
    return Step(
        "finalize",
        error=f"waiting for applications to be deleted from spoke clusters ({named}): look there, then annotate the "
        f"Pattern {SPOKES_EMPTY}=true",
    )


def _hub(observed: PatternObserved, app: Obj, wanted: Obj) -> Step | None:
    children = observed.children
    if not children:
        return None
    if observed.is_hub and observed.clusters:
        gone = tuple(
            Delete(MANAGED_CLUSTER, "", name, "a hub cannot be removed while it has clusters")
            for name in observed.clusters
        )
        count = len(gone)
        error = (
            f"deleted {count} managed cluster(s), waiting for removal to complete before proceeding with hub deletion"
        )
        return Step("finalize", gone, error=error)
    changed = _changed(app, wanted, "hub deletion")
    if changed is not None:
        return changed
    error = f"waiting {len(children)} hub child applications to be removed"
    return Step("finalize", tuple(_synced(app, prune=True)), error=error, after_s=SOON_S)


def _last(observed: PatternObserved, app: Obj) -> Step:
    actions: list[Action] = []
    if not dig(app, "metadata", "deletionTimestamp"):
        why = "the pattern is being deleted, with all that it installed"
        actions.append(Delete(APPLICATION, observed.places.argo_namespace, name_of(app), why, uid=uid_of(app)))
    link = observed.get("link")
    if link is not None and not observed.places.legacy_argo:
        actions.append(Delete(CONSOLE_LINK, "", name_of(link), "it leads nowhere any more", uid=uid_of(link)))
    error = f"waiting for application {name_of(app)} to be removed"
    return Step("finalize", tuple(actions), error=error, after_s=SOON_S)


def _changed(app: Obj, wanted: Obj, what: str) -> Step | None:
    if not application_differs(wanted, app):
        return None
    why = f"updated application {name_of(app)!r} for {what}"
    return Step("finalize", (replaced(app, wanted, why),), error=why, after_s=SOON_S)


def _synced(app: Obj, prune: bool) -> list[Replace]:
    """Return the request for a sync, unless one runs or the last one was for this state of the Application."""
    if app.get("operation") or dig(app, "metadata", "deletionTimestamp"):
        return []
    state = dig(app, "status", "operationState") or {}
    done = dig(state, "operation", "sync") or {}
    asked = {"prune": prune, "syncOptions": ["Force=true"]}
    settled = state.get("phase") == "Succeeded" and all(done.get(key) == value for key, value in asked.items())
    if settled and _sources(state) == _own_sources(app):
        return []
    why = "the phase of the deletion reaches what it made"
    return [Replace({**app, "operation": {"sync": asked}}, why)]


def _sources(state: Obj) -> object:
    result = state.get("syncResult") or {}
    return result.get("sources") or [result.get("source")]


def _own_sources(app: Obj) -> object:
    spec = app.get("spec") or {}
    return spec.get("sources") or [spec.get("source")]

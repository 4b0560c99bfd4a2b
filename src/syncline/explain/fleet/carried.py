"""Explains Applications of a hub that their clusters pull: from the Application over its work to the resource that
failed, and the cause that the cluster reports. Pure. :func:`explain_carried`.

The hub reads no repository for them and connects to no cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from syncline.apply.causes.advice import advice
from syncline.apply.managed import refused_namespace
from syncline.argo.application import typed_name
from syncline.base.cause import Cause
from syncline.explain.fleet.applications import (
    NEEDS_AGENT,
    ORDER,
    URGENT,
    ApplicationState,
    Failure,
    Standing,
    application_state,
)
from syncline.explain.fleet.clusters import explain_cluster
from syncline.explain.fleet.rollouts import order_causes, waits_of_cluster
from syncline.explain.view import Found, View, one_line
from syncline.fleet.pull import names
from syncline.fleet.pull.notices import OF_HUB
from syncline.fleet.pull.observe import APPS
from syncline.fleet.pull.order.explaining import URGENT as ROLLOUT_URGENT
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of, namespace_of

MAX_SHOWN: Final = 5
"""Applications, or failures of one, that a chain names; ``syncline report`` shows all."""


def explain_carried(view: View, app: Obj) -> Found:
    """Explain an Application that its cluster pulls; what the order over clusters makes it wait for comes first."""
    found = explain_state(application_state(view, app))
    held = order_causes(view, app)
    if not held:
        return found
    below = (*found.cause.because, *held) if found.blocked else (*held, *found.cause.because)
    blocked = found.blocked or any(one.state in ROLLOUT_URGENT for one in held)
    return Found(replace(found.cause, because=below), blocked)


def explain_state(state: ApplicationState) -> Found:
    """Return the chain of an Application in its cluster."""
    blocked = state.standing in URGENT
    if state.app is None:
        assert state.problem is not None, "a cluster without an Application has a reason"
        return Found(state.problem, blocked)
    below = _work(state) if state.work is not None else state.problem
    because = () if below is None else (below,)
    if state.work is None and state.problem is not None:
        own = state.problem
        head = _head(state, own.state, own.message, next_action=own.next_action)
        return Found(replace(head, because=() if state.away is None else (state.away,)), blocked)
    if state.standing is Standing.WELL:
        return Found(_head(state, _values(state), f"in cluster {state.cluster}, as it reports"), blocked)
    return Found(_head(state, _state(state), _message(state), *because), blocked)


def _state(state: ApplicationState) -> str:
    if _held(state):
        return "Held"
    match state.standing:
        case Standing.SILENT:
            return "Unreachable"
        case Standing.MISSING:
            return "NotApplied"
        case Standing.FAILING if state.operation.get("phase") in ("Failed", "Error"):
            return f"sync {state.operation['phase']}"
        case Standing.FAILING if state.health == "Healthy":
            return state.failures[0].reason if state.failures else state.sync
    return state.health if state.health != "Healthy" else state.operation.get("phase") or state.sync


def _held(state: ApplicationState) -> str:
    """Return why the order keeps an Application from its cluster; empty where it is there."""
    waits = state.ordered.held if state.ordered is not None and state.work is None else None
    return waits.message or waits.state if waits is not None and state.standing is Standing.PROGRESSING else ""


def _values(state: ApplicationState) -> str:
    return f"{state.sync}, {state.health}"


def _message(state: ApplicationState) -> str:
    where = f"in cluster {state.cluster}"
    if held := _held(state):
        return f"{where}: the order over clusters holds it back: {held}"
    if state.standing is Standing.SILENT:
        return f"{where}, which does not answer; the last it reported: {_values(state)}"
    if state.standing is Standing.MISSING:
        return where
    if state.failures:
        many = len(state.failures) + state.omitted
        return f"{where}: {many} failure{'' if many == 1 else 's'}"
    said = state.operation.get("message") if state.operation.get("phase") == "Running" else ""
    return f"{where}: {said or _values(state)}"


def _head(state: ApplicationState, word: str, message: str, *because: Cause, next_action: str = "") -> Cause:
    app = state.app or {}
    values = {"sync": state.sync, "health": state.health, "revision": state.revision, "cluster": state.cluster}
    return Cause(
        f"Application {namespace_of(app)}/{name_of(app)}",
        word,
        one_line(message),
        state.since,
        next_action=next_action,
        evidence=tuple((key, value) for key, value in values.items() if value),
        because=because,
    )


def _work(state: ApplicationState) -> Cause | None:
    """Return the cause of the work, with what its cluster reports below it."""
    if state.carried is None or state.standing is Standing.MISSING:
        return state.carried
    reported = _reported(state)
    said = "" if state.standing is Standing.SILENT else f"; {_source(state)}"
    message = f"{state.carried.message}{said}"
    return replace(state.carried, message=one_line(message), because=(*state.carried.because, *reported))


def _source(state: ApplicationState) -> str:
    if not state.detailed:
        return NEEDS_AGENT
    phase, said = state.operation.get("phase"), state.operation.get("message")
    if not phase:
        return "its cluster reports no sync yet"
    return f"its cluster reports: sync {phase}{f': {said}' if said and phase != 'Succeeded' else ''}"


def _reported(state: ApplicationState) -> Sequence[Cause]:
    going = state.waits if state.standing is Standing.PROGRESSING else ()
    shown = [_failed(one, state.cluster) for one in (*state.failures, *going)[:MAX_SHOWN]]
    left = len(state.failures) - MAX_SHOWN + state.omitted
    if left > 0:
        app = state.app or {}
        text = f"syncline report app/{typed_name(name_of(app), namespace_of(app))} -o json"
        shown.append(Cause("further failures", str(left), "of the same Application", next_action=text))
    return shown


def _who(one: Failure) -> str:
    """Return who says what concerns no resource."""
    return "the hub" if one.reason in OF_HUB else "its cluster"


def _failed(one: Failure, cluster: str) -> Cause:
    subject = str(ObjectRef(one.group, one.kind, one.namespace, one.name)) if one.kind else _who(one)
    fix = "" if any(each.next_action for each in one.because) else advice(one.message)
    fix = f"in cluster {cluster}, {fix}" if fix and refused_namespace(one.message) else fix
    return Cause(subject, one.reason, one_line(one.message), next_action=fix, because=one.because)


# -- what is above -----------------------------------------------------------------------------------------------------


def unwell(states: Iterable[ApplicationState]) -> list[Found]:
    """Return the chains of the Applications that are not well, the most urgent first."""
    found = sorted((one for one in states if one.standing is not Standing.WELL), key=lambda one: ORDER[one.standing])
    return [explain_state(one) for one in found]


def explain_member(view: View, cluster: Obj) -> Found:
    """Explain a ManagedCluster with the Applications that it pulls; while it does not answer that is the cause."""
    found = explain_cluster(view, cluster)
    if found.cause.state != "Available":
        return found
    held = waits_of_cluster(view, name_of(cluster))
    states = applications_of(view, name_of(cluster))
    urgent = [explain_state(one).cause for one in states if one.standing in URGENT]
    if not urgent:
        return Found(replace(found.cause, because=(*found.cause.because, *held)), found.blocked)
    text = f"{found.cause.message}; {len(urgent)} of {len(states)} Applications need attention"
    below = (*found.cause.because, *urgent[:MAX_SHOWN], *held)
    return Found(replace(found.cause, message=one_line(text), because=below), blocked=True)


def applications_of(view: View, cluster: str) -> list[ApplicationState]:
    """Return the states of the Applications that a cluster pulls, the most urgent first."""
    apps = [one for one in view.cluster.objects(APPS) if names.is_carried(one)]
    mine = [application_state(view, one) for one in apps if annotations_of(one)[names.CLUSTER] == cluster]
    return sorted(mine, key=lambda one: (ORDER[one.standing], name_of(one.app or {})))

"""Formats policies: lists, one policy with its clusters, templates with their history. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.base.clock import time_or_none
from syncline.cli.frame.output import table
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.patterns.policies.hub.explaining import violations
from syncline.patterns.policies.hub.replicating import full_name
from syncline.patterns.policies.names import ROOT_LABEL, State
from syncline.views.texts import age, one_line

HEADERS = ("NAMESPACE", "NAME", "ACTION", "STATE", "CLUSTERS", "AGE")
WIDE_HEADERS = ("PLACEMENTS", "SETS", "MESSAGE")
_CHANGED = " successfully"
"""What upstream's messages say of what was created, updated or deleted."""
MOST_CLUSTERS = 200
"""Clusters that a table shows; ``-o json`` has all."""


def policy_state(policy: Obj) -> str:
    """Return Disabled, NotPlaced, Waiting, or what is reported."""
    if dig(policy, "spec", "disabled"):
        return "Disabled"
    state = str(dig(policy, "status", "compliant") or "")
    if state:
        return state
    placed = dig(policy, "status", "status") or ROOT_LABEL in labels_of(policy)
    return "Waiting" if placed else "NotPlaced"


def is_good(policy: Obj) -> bool:
    return policy_state(policy) in (State.COMPLIANT, "Disabled")


def policy_rows(policies: Iterable[Obj], now: datetime, *, copies: Sequence[Obj] = (), wide: bool = False) -> str:
    """Return the table of policies. ``copies``: those of clusters, whose messages it shows."""
    of_root: dict[str, list[Obj]] = {}
    for one in copies:
        of_root.setdefault(labels_of(one).get(ROOT_LABEL, ""), []).append(one)
    rows = [[*_cells(one, now), *(_wide(one, of_root.get(full_name(one), ())) if wide else ())] for one in policies]
    return table((*HEADERS, *(WIDE_HEADERS if wide else ())), rows)


def _cells(policy: Obj, now: datetime) -> list[str]:
    listed = dig(policy, "status", "status") or ()
    good = sum(one.get("compliant") == State.COMPLIANT for one in listed)
    action = str(dig(policy, "spec", "remediationAction") or "-").lower()
    begun = age(time_or_none(dig(policy, "metadata", "creationTimestamp")), now)
    counted = f"{good}/{len(listed)}" if listed else "-"
    return [namespace_of(policy), name_of(policy), action, policy_state(policy), counted, begun]


def _wide(policy: Obj, copies: Sequence[Obj]) -> list[str]:
    placed = dig(policy, "status", "placement") or ()
    names = sorted({str(one.get("placement") or one.get("placementRule") or "?") for one in placed})
    sets = sorted({str(one["policySet"]) for one in placed if one.get("policySet")})
    messages = (f"{namespace_of(one)}: {text}" for one in copies if (text := last_message(one)))
    message = last_message(policy) or next(messages, "")
    return [", ".join(names) or "-", ", ".join(sets) or "-", one_line(message) or "-"]


def last_message(policy: Obj) -> str:
    """Return what is wrong by the first template of a copy that is not compliant."""
    for one in dig(policy, "status", "details") or ():
        history = one.get("history") or ()
        if one.get("compliant") != State.COMPLIANT and history:
            return violations(str(history[0].get("message")))
    return ""


def repaired(copy: Obj) -> datetime | None:
    """Return when the cluster was changed last for a policy, as far as its histories say."""
    histories = (one.get("history") or () for one in dig(copy, "status", "details") or ())
    changes = (each for history in histories for each in history if _CHANGED in str(each.get("message")))
    return max(filter(None, (time_or_none(each.get("lastTimestamp")) for each in changes)), default=None)


def describe_policy(policy: Obj, copies: Sequence[Obj], now: datetime) -> str:
    """Return a policy with its bindings, and what each cluster reports."""
    lines = [
        f"Policy {namespace_of(policy)}/{name_of(policy)}: {policy_state(policy)}",
        f"  action:      {str(dig(policy, 'spec', 'remediationAction') or 'as its templates say').lower()}",
        f"  templates:   {', '.join(_templates(policy)) or '-'}",
    ]
    for one in dig(policy, "status", "placement") or ():
        what = one.get("placement") or one.get("placementRule") or "a Placement that does not exist"
        through = f" (set {one['policySet']})" if one.get("policySet") else ""
        lines.append(f"  binding:     {one.get('placementBinding')} to {what}{through}")
    return "\n".join(lines) + "\n\n" + cluster_table(policy, copies, now)


def _templates(policy: Obj) -> list[str]:
    listed = dig(policy, "spec", "policy-templates") or ()
    return [
        f"{dig(one, 'objectDefinition', 'kind')}/{dig(one, 'objectDefinition', 'metadata', 'name')}" for one in listed
    ]


def cluster_table(policy: Obj, copies: Sequence[Obj], now: datetime) -> str:
    """Return one line for each cluster that gets the policy."""
    by_cluster = {namespace_of(one): one for one in copies}
    rows = []
    for one in (dig(policy, "status", "status") or ())[:MOST_CLUSTERS]:
        copy = by_cluster.get(str(one.get("clustername")), {})
        since = time_or_none(_last(copy).get("lastTimestamp"))
        state = str(one.get("compliant") or "Waiting")
        changed, text = repaired(copy), one_line(last_message(copy))
        times = [age(when, now) if when else "-" for when in (since, changed)]
        rows.append([str(one.get("clustername")), state, *times, text or "-"])
    return table(("CLUSTER", "STATE", "SINCE", "LAST CHANGE", "MESSAGE"), rows)


def _last(copy: Obj) -> Obj:
    """Return the last entry of all histories."""
    found = [one for each in dig(copy, "status", "details") or () for one in (each.get("history") or ())[:1]]
    return max(found, key=lambda one: str(one.get("lastTimestamp")), default={})


def describe_copy(copy: Obj, now: datetime) -> str:
    """Return the templates of a policy on one cluster, each with its history."""
    lines = [f"Policy {name_of(copy)} of cluster {namespace_of(copy)}: {policy_state(copy)}"]
    for one in dig(copy, "status", "details") or ():
        lines.append(f"  template {dig(one, 'templateMeta', 'name')}: {one.get('compliant') or 'Waiting'}")
        history = [str(each.get("message")) for each in one.get("history") or ()]
        for at, each in enumerate(one.get("history") or ()):
            said = _news(history[at], history[at + 1] if at + 1 < len(history) else "")
            lines.append(f"    {age(time_or_none(each.get('lastTimestamp')), now)} ago: {one_line(said)}")
    return "\n".join(lines)


def _news(message: str, before: str) -> str:
    """Return the state of an entry of a history, and what the entry before did not say."""
    state, *parts = message.split("; ")
    known = before.split("; ")
    return "; ".join([state, *(one for one in parts if one not in known)])


def policy_obj(policy: Obj, copies: Sequence[Obj]) -> Obj:
    """Return a policy as JSON: what is given, and what each cluster reports."""
    clusters = [
        {
            "cluster": str(one.get("clustername")),
            "compliant": one.get("compliant"),
            "details": dig(_copy(copies, str(one.get("clustername"))), "status", "details") or [],
        }
        for one in dig(policy, "status", "status") or ()
    ]
    return {
        "namespace": namespace_of(policy),
        "name": name_of(policy),
        "state": policy_state(policy),
        "remediationAction": dig(policy, "spec", "remediationAction"),
        "templates": _templates(policy),
        "placement": dig(policy, "status", "placement") or [],
        "clusters": clusters,
    }


def _copy(copies: Sequence[Obj], cluster: str) -> Obj:
    return next((one for one in copies if namespace_of(one) == cluster), {})

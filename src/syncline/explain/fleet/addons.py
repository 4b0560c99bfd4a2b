"""Explains add-ons of clusters by what their controllers say. Pure."""

from __future__ import annotations

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.fleet.clusters import cluster_cause
from syncline.explain.fleet.works import explain_work
from syncline.explain.view import Found, View, one_line
from syncline.fleet.conditions import find_condition
from syncline.kube.kinds.managedaddons import ADDON_NAME, MANAGED_ADDON
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of, ref_of

ADDONS = MANAGED_ADDON.group_kind
MAX_SHOWN = 3
GOOD = {
    "Available": "True",
    "ManifestApplied": "True",
    "RegistrationApplied": "True",
    "Configured": "True",
    "ClusterCertificateRotated": "True",
}
"""Conditions that are to be True; Degraded is to be False, Progressing says what goes on."""


def explain_addon(view: View, addon: Obj) -> Found:
    """Explain a ManagedClusterAddOn: its cluster, its conditions, then its works."""
    conditions = dig(addon, "status", "conditions") or ()
    available = find_condition(conditions, "Available") or {}
    bad = [one for one in conditions if GOOD.get(str(one.get("type")), one.get("status")) != one.get("status")]
    bad += [one for one in conditions if one.get("type") == "Degraded" and one.get("status") == "True"]
    below = [_said(one) for one in bad]
    away = cluster_cause(view, namespace_of(addon))
    if away is not None:
        return Found(_cause(addon, "Unreachable", "its cluster does not answer", away, *below), blocked=True)
    below += [found.cause for one in _works(view, addon) if (found := explain_work(view, one)).blocked][:MAX_SHOWN]
    state = {"True": "Available", "False": "Unavailable"}.get(str(available.get("status")), "Unknown")
    text = str(available.get("message") or "nothing has said yet whether it works")
    fix = "" if state == "Available" else "see its agent on the cluster, and the Lease that it renews there"
    return Found(_cause(addon, state, text, *below, fix=fix), blocked=state != "Available" or bool(below))


def _works(view: View, addon: Obj) -> list[Obj]:
    works = view.cluster.objects(MANIFEST_WORK.group_kind, namespace_of(addon))
    return [one for one in works if labels_of(one).get(ADDON_NAME) == name_of(addon)]


def _said(condition: Obj) -> Cause:
    since = time_or_none(condition.get("lastTransitionTime"))
    state = f"{condition.get('status')} {condition.get('reason')}"
    return Cause(f"condition {condition.get('type')}", state, one_line(str(condition.get("message") or "")), since)


def _cause(addon: Obj, state: str, message: str, *because: Cause, fix: str = "") -> Cause:
    said = find_condition(dig(addon, "status", "conditions") or (), "Available") or {}
    since = time_or_none(said.get("lastTransitionTime")) or time_or_none(dig(addon, "metadata", "creationTimestamp"))
    return Cause(str(ref_of(addon)), state, one_line(message), since, next_action=fix, because=because)

# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applications and plans as the modules return them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.syncline.syncline.plugins.module_utils.program import Program, difference, flags

CHANGES = ("create", "configure", "replace", "recreate", "refuse", "prune")
"""Actions of a plan that bring the cluster closer to the source; a hook alone is none."""
PLAN_CODES = (0, 2, 3, 4)
"""Exit codes of a plan that was made: nothing to do, changes, blocked, unsafe."""
PLAN_FLAGS = {"revision": "--revision", "prune": "--prune", "resources": "--resource"}


def row(app: dict[str, Any]) -> dict[str, Any]:
    """Return one Application without what only machines read."""
    status = app.get("status") or {}
    sync, operation = status.get("sync") or {}, status.get("operationState") or {}
    return {
        "name": app["metadata"]["name"],
        "namespace": app["metadata"].get("namespace", ""),
        "project": app.get("spec", {}).get("project") or "default",
        "sync": sync.get("status") or "Unknown",
        "health": (status.get("health") or {}).get("status") or "Unknown",
        "revision": sync.get("revision") or ", ".join(sync.get("revisions") or ()),
        "operation": {"phase": operation.get("phase") or "", "message": operation.get("message") or ""},
        "resources": status.get("resources") or [],
        "spec": app.get("spec") or {},
    }


def stored(program: Program, name: str, namespace: str, refresh: bool = False) -> dict[str, Any] | None:
    """Return the Application, or None if it does not exist; any other refusal fails the module."""
    words = ["app", "get", name, "-N", namespace] + (["--refresh"] if refresh else [])
    return program.document(words, missing=f"Application {namespace}/{name} does not exist")[1]


def planned(program: Program, params: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of a sync with the module's revision, prune and resources."""
    words = ["plan", "app/{namespace}/{name}".format(**params), "-N", params["namespace"]]
    return program.document([*words, *flags(params, PLAN_FLAGS)], PLAN_CODES)[1]


def actions(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the plan's actions that change objects, in their order."""
    return [one for wave in plan["waves"] for one in wave["actions"] if one["action"] in CHANGES]


def differences(plan: dict[str, Any]) -> list[dict[str, str]]:
    """Return the module's ``diff``: live and wanted objects where the plan has both, else the action in words."""
    return [_difference(one) for one in actions(plan)]


def _difference(one: dict[str, Any]) -> dict[str, str]:
    if "wanted" in one:
        return difference(one["object"], _without_notes(one["live"]), _without_notes(one["wanted"]))
    there = one["action"] != "create"
    gone = one["action"] == "prune"
    before = {"object": one["object"]} if there else {}
    return difference(one["object"], before, {} if gone else {"object": one["object"], "action": one["action"]})


def _without_notes(obj: dict[str, Any] | None) -> dict[str, Any]:
    """Return the object without what the server and field managers keep in it."""
    if not obj:
        return {}
    left = {key: value for key, value in obj.items() if key != "status"}
    metadata = left.get("metadata") or {}
    dropped: Iterable[str] = ("managedFields", "uid", "resourceVersion", "generation", "creationTimestamp")
    notes = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if key != "kubectl.kubernetes.io/last-applied-configuration"
    }
    left["metadata"] = {key: value for key, value in metadata.items() if key not in dropped} | {"annotations": notes}
    return left


def waves(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the plan's waves without the objects themselves."""
    return [wave | {"actions": [_named(one) for one in wave["actions"]]} for wave in plan["waves"]]


def summary(plan: dict[str, Any]) -> dict[str, Any]:
    """Return verdict, changes and warnings of the plan."""
    kept = {key: plan[key] for key in ("verdict", "problems", "unsafe", "warnings")}
    return kept | {"actions": [_named(one) for one in actions(plan)]}


def _named(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("action", "object", "reason")}

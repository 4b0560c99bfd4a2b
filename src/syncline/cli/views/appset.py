"""Formats ApplicationSets. Objects in, text out; no requests."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.cli.frame.output import table
from syncline.cli.views.application import line_of, source_lines
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.views.applications import policy_text, repo_of

HEADERS = ("NAME", "PROJECT", "SYNCPOLICY", "HEALTH", "CONDITIONS")
WIDE_HEADERS = ("REPO", "PATH", "TARGET")
MAX_ROWS = 100
"""Applications that ``appset get`` lists; ``-o yaml`` has all of the status."""
POLICIES = {"Auto": "Automated", "Auto-Prune": "Automated (Prune)", "Manual": "<none>"}


def qualified(found: Obj) -> str:
    """Return ``NAMESPACE/NAME``."""
    return f"{namespace_of(found)}/{name_of(found)}" if namespace_of(found) else name_of(found)


def template_of(found: Obj) -> Obj:
    """Return the template in the form of an Application."""
    return {"spec": dig(found, "spec", "template", "spec", default={}) or {}}


def set_policy(found: Obj) -> str:
    """Return ``create-only`` and so on; empty without one."""
    policy = dig(found, "spec", "syncPolicy", default={}) or {}
    texts = [str(policy.get("applicationsSync") or "")]
    texts += ["preserve resources"] if policy.get("preserveResourcesOnDeletion") else []
    return ", ".join(text for text in texts if text)


def true_conditions(found: Obj) -> str:
    """Return the types of the conditions that are True, by comma."""
    lines = dig(found, "status", "conditions", default=[]) or []
    return ",".join(str(one.get("type")) for one in lines if one.get("status") == "True")


def set_rows(found: Sequence[Obj], *, wide: bool) -> str:
    """Return the table of ``appset list``."""
    rows = []
    for one in found:
        template = template_of(one)["spec"]
        row = [
            qualified(one),
            str(template.get("project") or ""),
            set_policy(one),
            str(dig(one, "status", "health", "status", default="") or ""),
            true_conditions(one),
        ]
        if wide:
            source: Obj = template.get("source") or next(iter(template.get("sources") or []), {})
            row += [repo_of(source), source.get("path") or "", source.get("targetRevision") or ""]
        rows.append(row)
    return table([*HEADERS, *(WIDE_HEADERS if wide else ())], rows)


def describe_set(found: Obj, apps: Sequence[Obj] = ()) -> str:
    """Return the text of ``appset get``: argocd's header and conditions, then the Applications. ``apps``: those that it
    controls, whose state is newer than the one in its status."""
    app = template_of(found)
    place = app["spec"].get("destination") or {}
    health = dig(found, "status", "health", default={}) or {}
    said = f" ({health['message']})" if health.get("message") and health.get("status") != "Healthy" else ""
    lines = [
        line_of("Name", qualified(found)),
        line_of("Project", str(app["spec"].get("project") or "default")),
        line_of("Server", str(place.get("server") or place.get("name") or "")),
        line_of("Namespace", str(place.get("namespace") or "")),
        line_of("Health Status", f"{health.get('status') or ''}{said}"),
        *(source_lines(app) or ["Source:"]),
        line_of("SyncPolicy", POLICIES[policy_text(app)]),
    ]
    if set_policy(found):
        lines.append(line_of("Policy", set_policy(found)))
    conditions = dig(found, "status", "conditions", default=[]) or []
    if conditions:
        fields = ("type", "status", "message", "lastTransitionTime")
        rows = [[str(one.get(field) or "") for field in fields] for one in conditions]
        lines += ["", table(("CONDITION", "STATUS", "MESSAGE", "LAST TRANSITION"), rows)]
    return "\n".join([*lines, *_applications(found, apps)])


def _applications(found: Obj, apps: Sequence[Obj]) -> list[str]:
    """Return the table of the Applications, with what they wait for in a rollout."""
    status = dig(found, "status", default={}) or {}
    resources = {str(one.get("name")): one for one in status.get("resources") or []}
    for app in apps:
        synced, health = (dig(app, "status", part, default={}) or {} for part in ("sync", "health"))
        resources[name_of(app)] = {"status": synced.get("status"), "health": health}
    rollout = {str(one.get("application")): one for one in status.get("applicationStatus") or []}
    names = sorted({*resources, *rollout}, key=lambda name: (_step(rollout.get(name)), name))
    if not names:
        return []
    rows = []
    for name in names[:MAX_ROWS]:
        known, step = resources.get(name, {}), rollout.get(name, {})
        row = [name, str(known.get("status") or ""), str(dig(known, "health", "status", default="") or "")]
        if rollout:
            row += [str(step.get("step") or ""), str(step.get("status") or ""), str(step.get("message") or "")]
        rows.append(row)
    more = max(int(status.get("resourcesCount") or 0), len(names)) - len(rows)
    headers = ("APPLICATION", "STATUS", "HEALTH", *(("STEP", "ROLLOUT", "MESSAGE") if rollout else ()))
    return ["", table(headers, rows), *([f"… and {more} more (-o yaml shows the whole status)"] if more > 0 else [])]


def _step(entry: Obj | None) -> int:
    """Return the step of an Application for sorting; those in no step come last."""
    text = str((entry or {}).get("step") or "")
    return int(text) if text.isdecimal() else 1 << 30

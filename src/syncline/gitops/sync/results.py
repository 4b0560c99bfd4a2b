"""Result rows and their form in an Application's status.

The rows are an operation's only memory between reconciles. Called by the planner (``images_of``) and by the
application's status (``rows_from_status``, ``rows_to_status``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.gitops.sync.model import OperationPhase, ResultCode, ResultRow
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import Obj, ObjectRef, dig

_POD_SPECS = (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


def images_of(obj: Obj) -> tuple[str, ...]:
    """Return the container images of a pod, a pod template or a CronJob, the first that exists; init containers do not
    count."""
    lists = (dig(obj, *path, "containers") for path in _POD_SPECS)
    containers = next((found for found in lists if isinstance(found, list)), ())
    images = (dig(container, "image") for container in containers)
    return tuple(image for image in images if isinstance(image, str))


def rows_to_status(rows: Iterable[ResultRow]) -> list[Obj]:
    """Return ``status.operationState.syncResult.resources`` without empty fields, as upstream."""
    return [_to_status(row) for row in rows]


def _to_status(row: ResultRow) -> Obj:
    # namespace, name, group, version and kind are written even if empty
    entry: Obj = {
        "group": row.ref.group,
        "version": row.version,
        "kind": row.ref.kind,
        "namespace": row.ref.namespace,
        "name": row.ref.name,
    }
    optional = {
        "status": str(row.status),
        "message": row.message,
        "hookType": row.hook_type,
        "hookPhase": str(row.hook_phase),
        "syncPhase": str(row.sync_phase),
    }
    entry.update({name: value for name, value in optional.items() if value})
    if row.images:
        entry["images"] = list(row.images)
    return entry


def rows_from_status(entries: Any) -> tuple[ResultRow, ...]:
    """Inverse of :func:`rows_to_status`; an invalid entry is dropped and its task runs again."""
    read = [_from_status(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(row for row in read if row is not None)


def _from_status(entry: Obj) -> ResultRow | None:
    def text(name: str) -> str:
        value = entry.get(name)
        return value if isinstance(value, str) else ""

    try:
        return ResultRow(
            ref=ObjectRef(text("group"), text("kind"), text("namespace"), text("name")),
            version=text("version"),
            sync_phase=SyncPhase(text("syncPhase")),
            hook_type=text("hookType"),
            status=ResultCode(text("status")),
            hook_phase=OperationPhase(text("hookPhase")),
            message=text("message"),
            images=tuple(image for image in entry.get("images") or () if isinstance(image, str)),
        )
    except ValueError:
        return None

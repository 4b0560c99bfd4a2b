"""The messages of an operation, which users know and scripts match.

Called by the planner and, to extend API messages, by the application's status. Source: gitops-engine
``pkg/sync/sync_context.go``, Argo CD ``util/argo`` (AugmentSyncMsg).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from syncline.apply.outcome import WaitKind
from syncline.gitops.sync.task import Task
from syncline.kube.objects import ObjectRef, ResourceInfo

ALL_TASKS_RUN = "successfully synced (all tasks run)"
NO_MORE_TASKS = "successfully synced (no more tasks)"
DRY_RUN_FAILED = "one or more objects failed to apply (dry run)"
NOT_APPLIED = "one or more objects failed to apply"
UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
NAMESPACE_FAILED = "the namespace failed to apply"
INVALID = "one or more synchronization tasks are not valid"
SYNC_FAIL_HOOKS_FAILED = "one or more SyncFail hooks failed"
TERMINATED = "Operation terminated"
TERMINATED_BADLY = "Operation termination had errors"
WAVE_CALLBACK_FAILED = "SyncWaveHook failed: "
DEFERRED = "dry run refused as things are; repeated at its turn, after what comes before it: "

_NOT_FOUND = "the server could not find the requested resource"
_TOO_LONG = re.compile(r"metadata\.annotations: Too long: (must have at most|may not be more than) 262144 bytes")
"""The second form is that of servers since Kubernetes 1.32, which upstream does not know."""
_TOO_LONG_HINT = (
    " \n -Additional Info: This error usually means that you are trying to add a large resource on client side. "
    "Consider using Server-side apply or syncing with replace enabled. Note: Syncing with Replace enabled is "
    "potentially destructive as it may cause resource deletion and re-creation."
)


def _short(ref: ObjectRef) -> str:
    return f"{ref.group}/{ref.kind}/{ref.name}"


def waiting_message(tasks: Sequence[Task], kind: WaitKind) -> str:
    """Return ``waiting for completion of hook batch/Job/x and 2 more resources``; hooks are named first."""
    if not tasks:
        return ""
    hooks = [task for task in tasks if task.is_hook]
    what = {
        WaitKind.DELETION: "deletion of hook" if hooks else "deletion of",
        WaitKind.CONFIRMATION: "pruning confirmation of",
        WaitKind.DEFINITION: "the definition of the kind of",
        WaitKind.ACCOUNT: "the default service account for",
        WaitKind.CONDITION: "the condition of",
    }.get(kind, "completion of hook" if hooks else "healthy state of")
    text = f"waiting for {what} {_short((hooks or tasks)[0].ref)}"
    if len(tasks) > 1:
        text += f" and {len(tasks) - 1} more {'hooks' if len(hooks) == len(tasks) else 'resources'}"
    return text


def with_reasons(message: str, tasks: Iterable[Task]) -> str:
    """Append ``, reason: a,b``: the distinct messages of these tasks, sorted."""
    reasons = sorted({task.message for task in tasks})
    return f"{message}, reason: {','.join(reasons)}" if reasons else message


def dry_run_failed(refused: Sequence[Task]) -> str:
    """Return the message after dry runs that were refused. Upstream's dry run asks for no rights: what lacks them fails
    when it is applied there, with the reasons in the message."""
    if refused and all(task.unauthorized for task in refused):
        return with_reasons(NOT_APPLIED, refused)
    return DRY_RUN_FAILED


def deferred_message(refused: str) -> str:
    return f"{DEFERRED}{refused}"


def invalid_message(problems: Iterable[str]) -> str:
    return f"{INVALID}: {'; '.join(sorted(set(problems)))}"


def missing_message(ref: ObjectRef) -> str:
    return f"Resource {_short(ref)} is missing, it might have been deleted"


def augment_message(message: str, ref: ObjectRef, version: str, kinds: Sequence[ResourceInfo]) -> str:
    """Add a hint to an API message about a missing CRD or a too long annotation.

    Upstream leaves ``OAuth.config.openshift.io "" not found`` as it is, which is discovery's message for an unknown
    kind of an installed group; here both messages name the CRD.
    """
    if _NOT_FOUND in message or message == f'{ref.group_kind} "" not found':
        return _missing_kind(ref, version, kinds)
    hinted = _TOO_LONG.search(message) and _TOO_LONG_HINT not in message  # a stored message may come here again
    return message + _TOO_LONG_HINT if hinted else message


def _missing_kind(ref: ObjectRef, version: str, kinds: Sequence[ResourceInfo]) -> str:
    wanted = f"{ref.group}/{ref.kind} for requested resource {ref.namespace}/{ref.name}."
    same = [info for info in kinds if (info.group, info.kind) == (ref.group, ref.kind)]
    found = next(iter(same or [info for info in kinds if info.kind == ref.kind]), None)
    if found is None:
        return (
            f"The Kubernetes API could not find {wanted} "
            f'Make sure the "{ref.kind}" CRD is installed on the destination cluster.'
        )
    return (
        f'The Kubernetes API could not find version "{version}" of {wanted} '
        f'Version "{found.version}" of {found.group}/{found.kind} is installed on the destination cluster.'
    )

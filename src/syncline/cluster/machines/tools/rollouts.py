"""``rollout status`` of Deployments, DaemonSets and StatefulSets, with kubectl's messages.

Source: ``polymorphichelpers/rollout_status.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from syncline.cluster.machines.tools.arguments import Arguments
from syncline.cluster.machines.tools.reading import MAX_WAIT_S, POLL_S, seconds_of
from syncline.cluster.machines.tools.steps import CommandError, Output, Session, Sleep, Steps
from syncline.cluster.machines.tools.targets import Target, targets_of
from syncline.kube import client
from syncline.kube.objects import Obj, dig, generation, name_of


def rollout(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    """Run ``rollout status TYPE/NAME``, or for all objects that a selector matches, in sequence."""
    if words[:1] != ["status"]:
        raise CommandError("error: only 'rollout status' is supported by this tool")
    left = seconds_of(arguments.get("timeout"), MAX_WAIT_S) or MAX_WAIT_S
    targets = yield from targets_of(session, arguments, words[1:])
    for target in targets:
        left = yield from _until_done(target, left)
    return 0


def _until_done(target: Target, left: float) -> Steps[float]:
    """Report each change until the rollout is complete; return the remaining seconds."""
    progress = _PROGRESS.get(target.info.kind)
    if progress is None:
        raise CommandError(f"error: no status viewer has been implemented for {target.info.kind}")
    said = ""
    while True:
        answer = yield client.get(target.info, target.namespace, target.name)
        text, done = progress(answer.or_raise())
        if text != said:
            yield Output(text)
            said = text
        if done:
            return left
        if left <= 0:
            raise CommandError("error: timed out waiting for the condition")
        pause = min(POLL_S, left)
        yield Sleep(pause)
        left -= pause


def _deployment(obj: Obj) -> tuple[str, bool]:
    status, name = obj.get("status") or {}, name_of(obj)
    wanted = int(dig(obj, "spec", "replicas", default=1))
    updated, total = _count(status, "updatedReplicas"), _count(status, "replicas")
    available = _count(status, "availableReplicas")
    if generation(obj) > _count(status, "observedGeneration"):
        return "Waiting for deployment spec update to be observed...\n", False
    conditions = status.get("conditions") or ()
    progressing: Obj = next((each for each in conditions if each.get("type") == "Progressing"), {})
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        raise CommandError(f'error: deployment "{name}" exceeded its progress deadline')
    begin = f'Waiting for deployment "{name}" rollout to finish: '
    if updated < wanted:
        return f"{begin}{updated} out of {wanted} new replicas have been updated...\n", False
    if total > updated:
        return f"{begin}{total - updated} old replicas are pending termination...\n", False
    if available < updated:
        return f"{begin}{available} of {updated} updated replicas are available...\n", False
    return f'deployment "{name}" successfully rolled out\n', True


def _daemon_set(obj: Obj) -> tuple[str, bool]:
    _only_rolling(obj)
    status, name = obj.get("status") or {}, name_of(obj)
    wanted, updated = _count(status, "desiredNumberScheduled"), _count(status, "updatedNumberScheduled")
    available = _count(status, "numberAvailable")
    if generation(obj) > _count(status, "observedGeneration"):
        return "Waiting for daemon set spec update to be observed...\n", False
    begin = f'Waiting for daemon set "{name}" rollout to finish: '
    if updated < wanted:
        return f"{begin}{updated} out of {wanted} new pods have been updated...\n", False
    if available < wanted:
        return f"{begin}{available} of {wanted} updated pods are available...\n", False
    return f'daemon set "{name}" successfully rolled out\n', True


def _stateful_set(obj: Obj) -> tuple[str, bool]:
    _only_rolling(obj)
    status = obj.get("status") or {}
    wanted, ready = int(dig(obj, "spec", "replicas", default=1)), _count(status, "readyReplicas")
    updated, observed = _count(status, "updatedReplicas"), _count(status, "observedGeneration")
    if not observed or generation(obj) > observed:
        return "Waiting for statefulset spec update to be observed...\n", False
    if ready < wanted:
        return f"Waiting for {wanted - ready} pods to be ready...\n", False
    rolling = dig(obj, "spec", "updateStrategy", "rollingUpdate")
    if rolling is not None:
        due = wanted - int(rolling.get("partition") or 0)
        if updated < due:
            begin = "Waiting for partitioned roll out to finish: "
            return f"{begin}{updated} out of {due} new pods have been updated...\n", False
        return f"partitioned roll out complete: {updated} new pods have been updated...\n", True
    revision = status.get("updateRevision") or ""
    if revision != (status.get("currentRevision") or ""):
        begin = "waiting for statefulset rolling update to complete "
        return f"{begin}{updated} pods at revision {revision}...\n", False
    current = _count(status, "currentReplicas")
    return f"statefulset rolling update complete {current} pods at revision {revision}...\n", True


def _only_rolling(obj: Obj) -> None:
    if dig(obj, "spec", "updateStrategy", "type", default="RollingUpdate") != "RollingUpdate":
        raise CommandError("error: rollout status is only available for RollingUpdate strategy type")


def _count(status: Obj, field: str) -> int:
    return int(status.get(field) or 0)


_PROGRESS: Mapping[str, Callable[[Obj], tuple[str, bool]]] = {
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "StatefulSet": _stateful_set,
}

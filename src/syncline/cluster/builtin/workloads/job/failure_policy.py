"""Apply ``spec.podFailurePolicy`` to a failed pod.

The first matching rule decides; the messages are Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig, name_of, namespace_of


@dataclass(frozen=True, slots=True)
class Ruling:
    """``counts``: towards the back-off limit; ``fatal``: why the whole Job fails, or ""; ``fails_index``: its index is
    not retried."""

    counts: bool
    fatal: str = ""
    fails_index: bool = False


def rule(job: Obj, pod: Obj) -> Ruling:
    """Return the policy's ruling on one failed pod; without a matching rule the failure counts."""
    for index, each in enumerate(dig(job, "spec", "podFailurePolicy", "rules", default=[])):
        cause = _matches(each, pod)
        if not cause:
            continue
        action = str(each.get("action"))
        message = f"{cause} matching {action} rule at index {index}"
        return Ruling(action != "Ignore", message if action == "FailJob" else "", action == "FailIndex")
    return Ruling(counts=True)


def _matches(each: Obj, pod: Obj) -> str:
    """Return what in the pod matches the rule, or ""."""
    where = f"{namespace_of(pod)}/{name_of(pod)}"
    codes = each.get("onExitCodes")
    if codes is not None:
        for container, code in _exit_codes(pod):
            if codes.get("containerName") not in (None, container):
                continue
            if (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
                return f"Container {container} for pod {where} failed with exit code {code}"
        return ""
    for condition in dig(pod, "status", "conditions", default=[]):
        for pattern in each.get("onPodConditions") or ():
            same_status = condition.get("status") == (pattern.get("status") or "True")
            if condition.get("type") == pattern.get("type") and same_status:
                return f"Pod {where} has condition {condition['type']}"
    return ""


def _exit_codes(pod: Obj) -> Iterator[tuple[str, int]]:
    """Yield containers that ended with an error, init containers last, as upstream does."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in dig(pod, "status", field, default=[]):
            code = dig(status, "state", "terminated", "exitCode", default=0)
            if code:
                yield str(status.get("name")), int(code)

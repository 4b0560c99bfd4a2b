"""Evaluate ``spec.successPolicy``: which indexes suffice."""

from __future__ import annotations

from syncline.cluster.builtin.workloads.job.indexes import parse_indexes
from syncline.kube.objects import Obj, dig


def satisfied(job: Obj, done: frozenset[int], completions: int) -> str:
    """Return the message of the first rule that the succeeded indexes satisfy, or "". A rule with indexes needs all of
    them or ``succeededCount`` of them; one without needs as many of any (Kubernetes' success policy)."""
    if not done:
        return ""
    for at, rule in enumerate(dig(job, "spec", "successPolicy", "rules", default=[])):
        named, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if named is None:
            met = count is not None and len(done) >= int(count)
        else:
            wanted = parse_indexes(str(named), completions)
            reached = len(wanted & done)
            met = bool(wanted) and (reached == len(wanted) or (count is not None and reached >= int(count)))
        if met:
            return f"Matched rules at index {at}"
    return ""

"""What people ask of a roll-out over clusters, as changes of the spec of its FleetRollout; pure.

Each function returns the spec to write and sentences about what follows. A spec equal to the one given says that there
is nothing to write, so that a request may be repeated. A request that makes no sense raises :class:`SteeringError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.argo.application import USUAL_NAMESPACE
from syncline.base.clock import format_time, time_or_none
from syncline.fleet.pull import names
from syncline.kube.objects import Obj, annotations_of, dig, name_of, namespace_of, owner_references

BEGUN: Final = ("Permitted", "Progressing", "Proving", "Failed")
"""States of a cluster in ``status.clusters`` that carries the release, or may carry it at any moment."""
MAX_NAMED: Final = 5
"""Clusters that a sentence names; the others are counted."""


class SteeringError(ValueError):
    """The request makes no sense for this roll-out; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Steered:
    """``spec``: as it shall be. ``done``: what the request did, or that it was so before. ``follows``: what happens
    next, a sentence each."""

    spec: Obj
    done: str
    follows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proven:
    """A release that an Application had brought to its end before the current one. ``release``: of its group."""

    cluster: str
    application: str
    release: str
    since: datetime | None = None


def proven_before(revisions: Iterable[Obj], app: Obj, release: str) -> Proven | None:
    """Return the newest release of an Application, other than ``release``, that its cluster has proven. ``revisions``:
    the ControllerRevisions in the namespace of the cluster."""
    work, cluster = names.work_name(app), annotations_of(app).get(names.CLUSTER, "")
    mine = [
        one
        for one in revisions
        if any(owner.get("kind") == "ManifestWork" and owner.get("name") == work for owner in owner_references(one))
        and dig(one, "data", "groupRelease") not in (None, release)
    ]
    if not mine:
        return None
    newest = max(mine, key=lambda one: int(one.get("revision") or 0))
    since = time_or_none(dig(newest, "metadata", "creationTimestamp"))
    return Proven(cluster, name_of(app), str(dig(newest, "data", "groupRelease")), since)


def target_of(rollout: Obj) -> str:
    """Return what people write for a roll-out: the name of its set, or ``app/NAME``."""
    of = dig(rollout, "spec", "of") or {}
    return f"{'app/' if of.get('kind') == 'Application' else ''}{of.get('name') or ''}"


def typed_target(rollout: Obj, cluster: str = "") -> str:
    """Return what people write for a roll-out, and a cluster of it, after a command."""
    words = f"{target_of(rollout)} {cluster}".strip()
    space = namespace_of(rollout)
    return words if space in ("", USUAL_NAMESPACE) else f"{words} -n {space}"


def carrying(rollout: Obj, members: Iterable[str]) -> tuple[str, ...]:
    """Return the clusters of ``members`` that carry the current release, done or under way."""
    current_release(rollout)
    listed_ones = {str(one.get("cluster")) for one in _clusters(rollout)}
    return tuple(sorted((set(members) - listed_ones) | set(members) & set(_begun(rollout))))


def stop(rollout: Obj, reason: str, by: str, now: datetime) -> Steered:
    """Begin in no further cluster. What has begun goes on."""
    spec: Obj = rollout.get("spec") or {}
    before: Mapping[str, Any] = spec.get("stopped") or {}
    follows = (*_held(rollout), *_going_on(rollout))
    if before:
        return Steered(spec, f"is stopped already{stopped_by(before)}", follows)
    said = {"since": format_time(now), **_given(reason=reason, by=by)}
    return Steered({**spec, "stopped": said}, "stopped", follows)


def resume(rollout: Obj) -> Steered:
    """Let the roll-out go on."""
    spec: Obj = rollout.get("spec") or {}
    failed = [str(one.get("cluster")) for one in _clusters(rollout) if one.get("state") == "Failed"]
    follows: list[str] = []
    if failed:
        follows.append(
            f"{listed(failed)} failed, which stops the waves after: correct the cause in Git, or pass over a cluster: "
            f"syncline rollout skip {typed_target(rollout)}"
        )
    if "stopped" not in spec:
        return Steered(spec, "is not stopped", tuple(follows))
    left = [one for one in _waves(rollout) if one.get("pending")]
    if left and not failed:
        see = f"syncline rollout get {typed_target(rollout)}"
        follows.append(f"wave {left[0].get('wave')} goes on as far as its gates permit: {see}")
    return Steered(_without(spec, "stopped"), "goes on", tuple(follows))


def skip(rollout: Obj, cluster: str, members: Collection[str], by: str) -> Steered:
    """Pass over a cluster in this release. ``members``: clusters of the group. Raises SteeringError."""
    _member(cluster, members)
    spec: Obj = rollout.get("spec") or {}
    release = current_release(rollout)
    skipped: Sequence[Obj] = spec.get("skip") or ()
    follows = (
        f"cluster {cluster} keeps what it carries, and the waves after it do not wait for it; the next release "
        "includes it again",
    )
    if cluster in _begun(rollout):
        follows = (
            f"cluster {cluster} carries release {release} already, which goes on there; the waves after it do not wait "
            "for it any more",
        )
    if any(one.get("cluster") == cluster and one.get("release") == release for one in skipped):
        return Steered(spec, f"passes over cluster {cluster} already", follows)
    kept = [one for one in skipped if one.get("cluster") != cluster]
    asked = {**spec, "skip": [*kept, {"cluster": cluster, "release": release, **_given(by=by)}]}
    return Steered(asked, f"passes over cluster {cluster} in release {release}", follows)


def unskip(rollout: Obj, cluster: str, members: Collection[str]) -> Steered:
    """Include a cluster again. Raises SteeringError for one that is neither skipped nor in the group."""
    spec: Obj = rollout.get("spec") or {}
    skipped: Sequence[Obj] = spec.get("skip") or ()
    kept = [one for one in skipped if one.get("cluster") != cluster]
    if len(kept) == len(skipped):
        _member(cluster, members)
        return Steered(spec, f"does not pass over cluster {cluster}")
    asked = {**spec, "skip": kept} if kept else _without(spec, "skip")
    what = "goes back" if _goes_back(rollout) else "gets the release"
    follows = (f"cluster {cluster} {what} when its gates permit it; the waves after it wait for it",)
    return Steered(asked, f"includes cluster {cluster} again", follows)


def roll_back(
    rollout: Obj, reason: str, by: str, now: datetime, carrying: Iterable[str], proven: Collection[Proven]
) -> Steered:
    """Put back, in every cluster that carries the current release, the newest release that was proven before it.

    ``carrying``: clusters whose works carry the current release. Raises SteeringError if there is nothing to put back.
    """
    spec: Obj = rollout.get("spec") or {}
    release = current_release(rollout)
    if _goes_back(rollout):
        undo = f"to go forward to it again: syncline rollout roll-back {typed_target(rollout)} --undo"
        return Steered(spec, f"rolls back from release {release} already", (undo,))
    back = sorted(set(carrying))
    known = {one.cluster for one in proven}
    if not known.intersection(back):
        raise SteeringError(
            f"nothing is proven before release {release}: no cluster that carries it has brought an earlier release to "
            "its end, so there is nothing to put back. Revert the change in Git"
        )
    going, stay = [one for one in back if one in known], [one for one in back if one not in known]
    follows = [f"{doing(going, 'go', 'goes')} back, the last wave first, by the same gates"]
    if stay:
        follows.append(f"{doing(stay, 'keep', 'keeps')} the release: no earlier one is proven there")
    follows.append("a change in Git ends the roll back: a new release begins at wave 0")
    if "stopped" in spec:
        follows.append(f"it is stopped, so nothing moves before: syncline rollout resume {typed_target(rollout)}")
    said = {"from": release, "since": format_time(now), **_given(reason=reason, by=by)}
    return Steered({**spec, "rollBack": said}, f"rolls back from release {release}", (*follows,))


def go_forward(rollout: Obj) -> Steered:
    """Take a roll back back: the release goes out again, the first wave first."""
    spec: Obj = rollout.get("spec") or {}
    release = current_release(rollout)
    if "rollBack" not in spec:
        return Steered(spec, "does not roll back")
    if not _goes_back(rollout):
        return Steered(_without(spec, "rollBack"), "forgets a roll back that is over")
    follows = [f"release {release} goes out again, the first wave first; each cluster has to prove it once more"]
    if "stopped" in spec:
        follows.append(f"it is stopped, so nothing moves before: syncline rollout resume {typed_target(rollout)}")
    return Steered(_without(spec, "rollBack"), f"goes forward to release {release} again", tuple(follows))


def _goes_back(rollout: Obj) -> bool:
    release = dig(rollout, "status", "release")
    return bool(release) and dig(rollout, "spec", "rollBack", "from") == release


def current_release(rollout: Obj) -> str:
    """Return the id of the release that is rolled out. Raises SteeringError while the hub has written none."""
    found = str(dig(rollout, "status", "release") or "")
    if not found:
        raise SteeringError(
            "the hub has not worked on it yet: no release is known (is the role `pull` running? syncline up --hub runs "
            "it)"
        )
    return found


def stopped_by(stopped: Mapping[str, Any]) -> str:
    """Return `` since … by …: reason`` of ``spec.stopped``."""
    since = f" since {stopped['since']}" if stopped.get("since") else ""
    by = f" by {stopped['by']}" if stopped.get("by") else ""
    reason = f": {stopped['reason']}" if stopped.get("reason") else ""
    return f"{since}{by}{reason}"


def listed(clusters: Sequence[str]) -> str:
    """Return clusters for a sentence: the first by name, and how many more."""
    more = f" and {len(clusters) - MAX_NAMED} more" if len(clusters) > MAX_NAMED else ""
    return f"{', '.join(sorted(clusters)[:MAX_NAMED])}{more}"


def doing(clusters: Sequence[str], several: str, one: str) -> str:
    """Return clusters and what they do: ``aws-1 goes``, ``aws-1, aws-2 go``."""
    return f"{listed(clusters)} {one if len(clusters) == 1 else several}"


def counted(count: int, what: str) -> str:
    """Return ``1 cluster``, ``2 clusters``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _held(rollout: Obj) -> Iterator[str]:
    """Yield which waves do not begin, or not further."""
    for one in _waves(rollout):
        pending = int(one.get("pending") or 0)
        if pending:
            begun = pending < int(one.get("total") or 0)
            verb = "does not go further" if begun else "does not begin"
            yield f"wave {one.get('wave')} ({counted(pending, 'cluster')}) {verb}"


def _going_on(rollout: Obj) -> Iterator[str]:
    if going := _begun(rollout, but="Failed"):
        yield f"{doing(going, 'go', 'goes')} on: what has begun is not taken back"


def _begun(rollout: Obj, but: str = "") -> list[str]:
    """Return the clusters that have the release, or may have it now, and have not proved it."""
    begun = (one for one in _clusters(rollout) if one.get("state") in BEGUN and one.get("state") != but)
    return list(dict.fromkeys(str(one.get("cluster")) for one in begun))


def _member(cluster: str, members: Collection[str]) -> None:
    if cluster not in members:
        there = f"its clusters are {listed(sorted(members))}" if members else "it has no clusters"
        raise SteeringError(f"cluster {cluster} is not in the group; {there}")


def _clusters(rollout: Obj) -> Sequence[Obj]:
    return dig(rollout, "status", "clusters") or ()


def _waves(rollout: Obj) -> Sequence[Obj]:
    return dig(rollout, "status", "waves") or ()


def _without(spec: Obj, key: str) -> Obj:
    return {name: value for name, value in spec.items() if name != key}


def _given(**texts: str) -> Obj:
    return {key: text for key, text in texts.items() if text}

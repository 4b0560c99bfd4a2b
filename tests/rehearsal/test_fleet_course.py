"""The order of a group whose equal clusters are planned once is that in which each of them is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from syncline.fleet.pull.order.annotations import Asked
from syncline.fleet.pull.order.evidence import Facts
from syncline.fleet.pull.order.forecasting import GOOD, Said, forecast
from syncline.fleet.pull.order.model import ClusterSeen, GroupSeen, Target
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.objects import ObjectRef
from syncline.rehearsal.fleet.course import course_of
from syncline.rehearsal.fleet.reactions import Reactions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROLLING: Sequence[Said] = (
    Said(timedelta(seconds=3), GOOD, "pool worker is updating"),
    Said(timedelta(seconds=90), GOOD, ""),
)
BAD = Said(timedelta(seconds=7), Facts(sync="OutOfSync", phase="Failed", operation_message="no quota"))
SAYS: dict[str, Sequence[Said]] = {
    "edge": (Said(timedelta(seconds=10), GOOD),),
    "site": ROLLING,
    "bad": (BAD,),
    "mute": (),
    "last": (Said(timedelta(seconds=1), GOOD),),
}


def target(name: str, wave: int, **more: object) -> Target:
    cluster = ClusterSeen(name, available=not name.startswith("away"))
    made = Target({"metadata": {"name": f"{name}-web"}}, cluster, wave, wanted=f"release-of-{name}", facts=Facts(""))
    return replace(made, **more)  # type: ignore[arg-type]


def group(*entries: tuple[str, int, int]) -> GroupSeen:
    made = [target(f"{kind}-{number}", wave) for kind, wave, count in entries for number in range(count)]
    made.append(target("edge-slow", 0, asked=Asked(healthy_for=timedelta(minutes=5))))
    made.append(target("edge-aside", 0, aside="it syncs by hand"))
    rollout = {
        "apiVersion": ROLLOUT.api_version,
        "kind": ROLLOUT.kind,
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u"},
        "spec": {},
    }
    ref = ObjectRef(*APPLICATION_SET.group_kind, "argocd", "web")
    return GroupSeen(ref, None, rollout, "waves are named", tuple(made))


def said(cluster: str) -> Reactions:
    return Reactions({f"{cluster}-web": tuple(SAYS.get(cluster.partition("-")[0], ()))})


@pytest.mark.parametrize(
    "seen",
    [
        group(("edge", 0, 5), ("site", 1, 6), ("last", 2, 4), ("edge-b", 3, 3)),
        group(("edge", 0, 3), ("bad", 1, 4), ("site", 1, 3), ("last", 2, 3)),
        group(("bad", 0, 4), ("edge", 0, 4), ("last", 1, 5)),
        group(("edge", 0, 3), ("mute", 1, 4), ("away", 1, 4), ("last", 2, 3)),
    ],
    ids=["all are done", "some fail", "the first fail", "some are silent"],
)
def test_clusters_that_are_equal_take_the_turns_that_each_would_take(seen: GroupSeen) -> None:
    whole = forecast(seen, NOW, lambda one, _release, _at: said(one.cluster.name).said[one.name], rounds=1000)
    wanted = {}
    for one in whole.ahead:
        begins = None if one.begins is None else (one.begins - NOW).total_seconds()
        ends = None if one.ends is None else (one.ends - NOW).total_seconds()
        waited = one.waits[-1].why if one.waits and begins is None else one.standing.why if begins is None else ""
        wanted[one.key] = begins, ends, waited
    course = course_of(seen, None, NOW, said)
    assert {(one.cluster, one.app): (one.begins_s, one.ends_s, one.why) for one in course.turns} == wanted
    assert [one.cluster for one in course.turns] == [one.key[0] for one in whole.ahead]
    assert len({one[:2] for one in wanted.values()}) > 2, "the kinds of clusters take different turns"

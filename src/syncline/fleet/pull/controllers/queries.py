"""Questions about Applications that clusters pull: which ones agents answer, and when they go."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Plan, awaiting_lists
from syncline.fleet.pull import names
from syncline.fleet.pull.observe import APPS, CLUSTERS, WORKS, application_of, unlisted
from syncline.fleet.pull.queries.judging import Asked, AskedOf, plan_queries
from syncline.fleet.pull.queries.model import phase_of, question_of
from syncline.kube.kinds.applicationqueries import QUERY
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of, namespace_of

QUERIES: Final = QUERY.group_kind


def query_controller() -> Controller[AskedOf]:
    """Return the controller of all questions to a cluster; its keys are ManagedClusters, also those that are gone."""

    def observe(cache: Snapshot, ref: ObjectRef) -> AskedOf | None:
        queries = cache.objects(QUERIES, ref.name)
        if not queries:
            return None
        missing = unlisted(cache, (QUERIES, APPS, WORKS))
        if missing:
            return AskedOf(ref.name, (), missing)
        return AskedOf(ref.name, tuple(_asked(cache, ref.name, one) for one in queries))

    def plan(seen: AskedOf, now: datetime) -> Plan:
        return Plan(*awaiting_lists((seen.unlisted,))) if seen.unlisted else plan_queries(seen, now)

    def of_query(query: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", namespace_of(query)),)

    return Controller(
        name="application-queries",
        kind=CLUSTERS,
        predicate=comes_or_goes,
        watches=(Watch(QUERIES, of_query, differ(phase_of)),),
        observe=observe,
        plan=plan,
    )


def _asked(cache: Snapshot, cluster: str, query: Obj) -> Asked:
    question = None if phase_of(query) else question_of(query)
    app = cache.get(ObjectRef(*APPS, question.namespace, question.name)) if question is not None else None
    if app is None or not names.is_carried(app) or annotations_of(app)[names.CLUSTER] != cluster:
        return Asked(query)
    work = cache.get(ObjectRef(*WORKS, cluster, names.work_name(app)))
    carries = work is not None and application_of(cache, work) is not None
    return Asked(query, app, name_of(work) if carries and work is not None else "")

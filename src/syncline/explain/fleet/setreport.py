"""The report of an ApplicationSet: its clusters with how their Applications fare. Pure. :func:`set_report`.

The counts are those of the MulticlusterApplicationSetReport, over Applications instead of clusters: two Applications of
a set in one cluster count twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.apply.causes.pods import condition
from syncline.appset.observing.observe import generators_of
from syncline.appset.status import ERROR
from syncline.argo.application import typed_name
from syncline.argo.clusters import Cluster, clusters_of
from syncline.base.cause import OR, Cause
from syncline.explain.fleet.applications import ORDER, URGENT, ApplicationState, Standing, application_state
from syncline.explain.view import View, one_line
from syncline.fleet.pull import names
from syncline.fleet.pull.observe import APPS, DECISIONS
from syncline.kube.kinds.managedclusters import PLACEMENT_DECISION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, namespace_of, ref_of
from syncline.kube.selectors import SelectorError, label_selector_from

SECRETS: Final = GroupKind("", "Secret")
CONFIG_MAPS: Final = GroupKind("", "ConfigMap")


@dataclass(frozen=True, slots=True)
class SetReport:
    """``subject``: the ApplicationSet, or an Application of none. ``rows``: the most urgent first, then by cluster."""

    subject: ObjectRef
    rows: tuple[ApplicationState, ...]
    now: datetime

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the MulticlusterApplicationSetReport, then how many stand how."""
        applications = [one for one in self.rows if one.app is not None]
        healthy = sum(one.health == "Healthy" for one in applications)
        synced = sum(one.sync == "Synced" for one in applications)
        standing = Counter(one.standing for one in self.rows)
        return {
            "clusters": len({one.cluster for one in self.rows}),
            "applications": len(applications),
            "healthy": healthy,
            "notHealthy": len(applications) - healthy,
            "inProgress": sum(one.health == "Progressing" for one in applications),
            "synced": synced,
            "notSynced": len(applications) - synced,
            **{str(one): standing[one] for one in Standing},
        }

    @property
    def urgent(self) -> bool:
        """Whether anything needs a person."""
        return any(one.standing in URGENT for one in self.rows)


def set_report(view: View, appset: Obj, control_namespace: str) -> SetReport:
    """Return the report of an ApplicationSet. ``control_namespace``: of Argo CD's settings and cluster Secrets."""
    clusters = _clusters(view, control_namespace)
    by_server = {one.server.rstrip("/"): one.name for one in clusters}
    apps = [one for one in view.cluster.objects(APPS, namespace_of(appset)) if _owns(appset, one)]
    rows = [application_state(view, one, by_server) for one in apps]
    there = {one.cluster for one in rows}
    for cluster, decision in _selected(view, appset).items():
        if cluster not in there:
            rows.append(ApplicationState(cluster, None, problem=_not_made(appset, cluster, decision, clusters)))
    return SetReport(ref_of(appset), _ordered(rows), view.now)


def application_report(view: View, app: Obj, control_namespace: str) -> SetReport:
    """Return the report of one Application."""
    by_server = {one.server.rstrip("/"): one.name for one in _clusters(view, control_namespace)}
    return SetReport(ref_of(app), (application_state(view, app, by_server),), view.now)


def _ordered(rows: Iterable[ApplicationState]) -> tuple[ApplicationState, ...]:
    return tuple(sorted(rows, key=lambda one: (ORDER[one.standing], one.cluster, name_of(one.app or {}))))


def _owns(appset: Obj, app: Obj) -> bool:
    return names.owning_set(app) == name_of(appset)


def _clusters(view: View, control_namespace: str) -> tuple[Cluster, ...]:
    return clusters_of(view.cluster.objects(SECRETS, control_namespace))


# -- clusters that are selected ----------------------------------------------------------------------------------------


def _selected(view: View, appset: Obj) -> dict[str, str]:
    """Return the clusters that PlacementDecisions of the set's generators name, with the name of the decision."""
    found: dict[str, str] = {}
    for kind, fields in generators_of(appset):
        if kind == "clusterDecisionResource" and isinstance(fields, Mapping) and _of_placements(view, appset, fields):
            for one in _decisions(view, namespace_of(appset), fields):
                for decision in dig(one, "status", "decisions") or ():
                    found.setdefault(str(decision.get("clusterName") or ""), name_of(one))
    found.pop("", None)
    return found


def _of_placements(view: View, appset: Obj, fields: Mapping[str, object]) -> bool:
    """Return whether a generator reads PlacementDecisions; its ConfigMap says so."""
    ref = ObjectRef(*CONFIG_MAPS, namespace_of(appset), str(fields.get("configMapRef") or ""))
    data = (view.cluster.get(ref) or {}).get("data") or {}
    group = str(data.get("apiVersion") or "").partition("/")[0]
    return (group, str(data.get("kind") or "").lower()) == (PLACEMENT_DECISION.group, "placementdecisions")


def _decisions(view: View, namespace: str, fields: Mapping[str, object]) -> list[Obj]:
    listed = view.cluster.objects(DECISIONS, namespace)
    if fields.get("name"):
        return [one for one in listed if name_of(one) == fields["name"]]
    selector = fields.get("labelSelector")
    try:
        matches = label_selector_from(selector if isinstance(selector, Mapping) else None)
    except SelectorError:
        return []
    return [one for one in listed if matches.matches(labels_of(one))]


def _not_made(appset: Obj, cluster: str, decision: str, clusters: Iterable[Cluster]) -> Cause:
    """Return why a selected cluster has no Application: no cluster Secret, an error of the set, or not yet."""
    subject = f"cluster {cluster}"
    text = f"PlacementDecision {decision} selects it, and the set has made no Application for it"
    error = condition(appset, ERROR)
    known = [one.name for one in clusters]
    if error.get("status") == "True":
        return Cause(subject, "NotMade", one_line(f"{text}: {error.get('message')}"), next_action=_look(appset))
    if cluster not in known and len(known) > 1:
        fix = f"make a GitOpsCluster that selects it: docs/pull-model.md{OR}syncline cluster list"
        return Cause(subject, "NotMade", f"{text}: no cluster Secret has this name", next_action=fix)
    return Cause(subject, "NotMade", text, next_action=_look(appset))


def _look(appset: Obj) -> str:
    return f"syncline explain appset/{typed_name(name_of(appset), namespace_of(appset))}"

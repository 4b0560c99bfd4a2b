"""The ``clusterDecisionResource`` generator: one row for each decision that names a known cluster.

A ConfigMap names the kind and the keys of such objects (Open Cluster Management's PlacementDecisions, for one).
"""

from __future__ import annotations

from typing import Any

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.rendering.goforms import shown
from syncline.argo.clusters import Cluster, clusters_of
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from

LIST_KEY = "clusters"


def rows_of_decisions(element: Element, context: Context) -> Rows:
    """Return rows in the order of objects and decisions.

    No object is an error; objects without decisions, or a ConfigMap without ``matchKey``, are no rows.
    """
    config = _config_map(element.text("configMapRef"), context)
    objects = _objects(element, config, context)
    match_key = str(config.get("matchKey") or "")
    if not match_key:
        return []
    known: dict[str, Cluster] = {}
    for cluster in clusters_of(context.facts.clusters):
        known.setdefault(cluster.name, cluster)
    rows: Rows = []
    for decision in _decisions(objects, str(config.get("statusListKey") or LIST_KEY)):
        named = decision.get(match_key)
        found = known.get(shown(named)) if named not in (None, "") else None
        if found is not None:
            rows.append(_row(decision, found, element, context))
    return rows


def interval(element: Element, context: Context) -> float:
    return element.seconds("requeueAfterSeconds", context.facts.requeue_s)


def _row(decision: Obj, cluster: Cluster, element: Element, context: Context) -> Row:
    row: Row = {"name": cluster.name, "server": cluster.server}
    row.update({key: shown(value) for key, value in decision.items()})
    context.put_values(row, dict(element.text_map("values")))
    return row


def _config_map(name: str, context: Context) -> Obj:
    found = context.facts.config_maps.get(name)
    if found is None:
        why = context.facts.unread.get(f"ConfigMap/{name}")
        missing = f'configmaps "{name}" not found'
        raise GenerationError(f"error reading configMapRef: {why or missing}")
    data = found.get("data")
    return data if isinstance(data, dict) else {}


def _objects(element: Element, config: Obj, context: Context) -> list[Obj]:
    """Return the chosen objects; one of name and selector must choose."""
    version, plural = str(config.get("apiVersion") or ""), str(config.get("kind") or "")
    if not plural or version.find("/") < 1:
        raise GenerationError("there is a problem with the apiVersion, kind or resourceName provided")
    name, selector = element.text("name"), element.selector("labelSelector")
    written = element.below("labelSelector")
    selects = written is not None and any(
        written.raw.get(key) is not None for key in ("matchLabels", "matchExpressions")
    )
    if bool(name) is selects:
        raise GenerationError("there is a problem with the definition of the ClusterDecisionResource generator")
    why = context.facts.unread.get(f"{version}/{plural}")
    if why:
        raise GenerationError(f"failed to get dynamic resources: {why}")
    found = context.facts.decisions.get((version, plural), ())
    chosen = [one for one in found if name_of(one) == name] if name else _selected(found, selector)
    if not chosen:
        raise GenerationError("no clusterDecisionResources found")
    return chosen


def _selected(found: tuple[Obj, ...], selector: Obj | None) -> list[Obj]:
    try:
        wanted = label_selector_from(selector or {})
    except SelectorError as error:
        raise GenerationError(f"failed to get dynamic resources: {error}") from None
    if wanted.empty:
        # Upstream sends "<none>" to the API server, which refuses it.
        why = "unable to parse requirement: found '<', expected: !, identifier, or 'end of string'"
        raise GenerationError(f"failed to get dynamic resources: {why}; labelSelector must select something")
    return [one for one in found if wanted.matches(labels_of(one))]


def _decisions(objects: list[Obj], key: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for one in objects:
        if not one.get("status"):
            continue
        listed = dig(one, "status", key)
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise GenerationError(f"{name_of(one)}: status.{key} must be a list of maps")
        made += listed
    return made

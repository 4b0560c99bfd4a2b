"""The ``clusters`` generator: one row for each cluster Secret that a selector matches, and the local cluster."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.rendering.slug import normalize
from syncline.argo.clusters import IN_CLUSTER_NAME, IN_CLUSTER_SERVER, SECRET_TYPE
from syncline.kube.gotemplate.values import StringMap
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from


def rows_of_clusters(element: Element, context: Context) -> Rows:
    """Return a row for each cluster name, in their order, then the local cluster if no Secret describes it.

    With a selector the local cluster is left out: it has no labels. Of two Secrets with one cluster name the last one
    counts (by the Secret's name). ``flatList``: one row with all of them.
    """
    selector = element.selector("selector") or {}
    wanted = _selector(selector)
    known: dict[str, Obj] = {}
    for secret in sorted(context.facts.clusters, key=name_of):
        if wanted.matches(labels_of(secret)):
            known[_data(secret, "name")] = secret
    rows = [_row(known[name], context) for name in sorted(known)]
    try:
        for row in rows:
            context.add_values(row, element)
    except GenerationError as error:
        raise GenerationError(f"error appending templated values for cluster: {error}") from None
    if not any(selector.values()) and not any(_data(one, "server") == IN_CLUSTER_SERVER for one in known.values()):
        rows.append(_local(element, context))
    return [{"clusters": ClusterList(rows)}] if element.flag("flatList") else rows


class ClusterList(list[Row]):
    """Go's []map[string]interface {}, which is not flattened for selectors."""

    __slots__ = ()
    go_type = "[]map[string]interface {}"
    kind = "slice"


def _selector(given: Obj) -> Selector:
    labels = {**given.get("matchLabels", {}), SECRET_TYPE: "cluster"}
    try:
        return label_selector_from({**given, "matchLabels": labels})
    except SelectorError as error:
        raise GenerationError(f"error getting cluster secrets: error converting label selector: {error}") from None


def _local(element: Element, context: Context) -> Row:
    row: Row = {
        "name": IN_CLUSTER_NAME,
        "nameNormalized": IN_CLUSTER_NAME,
        "server": IN_CLUSTER_SERVER,
        "project": "",
    }
    try:
        context.add_values(row, element)
    except GenerationError as error:
        raise GenerationError(f"error appending templated values for local cluster: {error}") from None
    return row


def _row(secret: Obj, context: Context) -> Row:
    name = _data(secret, "name")
    row: Row = {
        "name": name,
        "nameNormalized": normalize(name),
        "server": _data(secret, "server"),
        "project": _data(secret, "project"),
    }
    texts = {"annotations": annotations_of(secret), "labels": labels_of(secret)}
    if context.go:
        metadata: dict[str, Any] = {kind: StringMap(found) for kind, found in texts.items() if found}
        row["metadata"] = metadata
    else:
        for kind, found in texts.items():
            row.update({f"metadata.{kind}.{key}": value for key, value in found.items()})
    return row


def _data(secret: Obj, key: str) -> str:
    """Return one value of a Secret's data as text, empty if absent."""
    data = secret.get("data")
    encoded = data.get(key) if isinstance(data, dict) else None
    try:
        return base64.b64decode(str(encoded or ""), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return ""

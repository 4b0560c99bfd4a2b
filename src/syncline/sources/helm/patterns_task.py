"""Renders values of a cluster group in a render worker: :func:`render`."""

from __future__ import annotations

import json
from typing import Any

from syncline.clustergroup.acm import render as acm
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.printing import Release
from syncline.clustergroup.render import objects_of, values_of
from syncline.kube.objects import Obj
from syncline.sources.errors import Problem, SourceError


def render(payload: dict[str, Any]) -> list[Obj]:
    """Return the objects in the order of the chart's files. Raises :class:`SourceError` for values that give none."""
    given = [json.loads(payload["values"])]
    release = Release(payload["name"], payload["namespace"], payload["picture"])
    try:
        if payload["chart"] == "acm":
            return acm.objects_of(acm.values_of(given), release)
        return objects_of(values_of(given, checked=not payload["skip_schema"]), release)
    except (RenderFailed, ValuesRefused) as error:
        raise SourceError(Problem.INVALID, str(error), field="spec.source.helm") from None

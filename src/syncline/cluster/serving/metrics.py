"""Expose request counts and the state of the store as Prometheus text, under the names that dashboards use.

``serve`` reports each finished request; ``assembly`` gives the gauges and registers :meth:`Metrics.text` as
``/metrics``. Names and labels follow Kubernetes' API server where it has the metric; ours begin with ``syncline_``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from syncline.cluster.fairness.measures import Family
from syncline.cluster.serving.answered import Answered

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES = 10_000
"""Series per counter; further resources share one series, so that callers cannot exhaust memory."""

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
_METHODS = frozenset(_VERBS.values()) | {"HEAD", "OPTIONS"}

Series = tuple[str, str, str, str, str]
"""Labels: verb, group, resource, subresource, code."""
_OTHERS: Series = ("OTHER", "", "", "", "")


class Metrics:
    """``gauges`` returns name → (help, value); ``families`` returns metrics with labels."""

    def __init__(
        self,
        gauges: Callable[[], Mapping[str, tuple[str, float]]],
        families: Callable[[], Iterable[Family]] = tuple,
    ) -> None:
        self._gauges = gauges
        self._families = families
        self._requests: Counter[Series] = Counter()
        self._seconds: dict[str, float] = {}
        self._answers: Counter[str] = Counter()

    def count(self, answered: Answered) -> None:
        route = answered.route
        verb = _VERBS.get(answered.verb, answered.verb.upper())
        verb = verb if verb in _METHODS else "OTHER"
        code = str(answered.status)
        known = 200 <= answered.status < 300  # A failed request may name any resource at all.
        series = (verb, route.group, route.resource, route.subresource, code) if known else (verb, "", "", "", code)
        if series not in self._requests and len(self._requests) >= MAX_SERIES:
            series = _OTHERS
        self._requests[series] += 1
        self._answers[verb] += 1
        self._seconds[verb] = self._seconds.get(verb, 0.0) + (answered.ended - answered.began).total_seconds()

    def text(self) -> str:
        """Return all metrics in Prometheus' exposition format, sorted."""
        lines = [
            "# HELP apiserver_request_total Requests by verb, resource and HTTP code.",
            "# TYPE apiserver_request_total counter",
        ]
        for (verb, group, resource, sub, code), number in sorted(self._requests.items()):
            labels = f'code="{code}",group="{group}",resource="{resource}",subresource="{sub}",verb="{verb}"'
            lines.append(f"apiserver_request_total{{{labels}}} {number}")
        lines += [
            "# HELP apiserver_request_duration_seconds Time until the answer, by verb.",
            "# TYPE apiserver_request_duration_seconds summary",
        ]
        for verb in sorted(self._answers):
            lines.append(f'apiserver_request_duration_seconds_sum{{verb="{verb}"}} {self._seconds[verb]:.6f}')
            lines.append(f'apiserver_request_duration_seconds_count{{verb="{verb}"}} {self._answers[verb]}')
        for name, (report, value) in sorted(self._gauges().items()):
            lines += [f"# HELP {name} {report}", f"# TYPE {name} gauge", f"{name} {value:.17g}"]
        for family in self._families():
            lines += _family_lines(family)
        return "\n".join(lines) + "\n"


def _family_lines(family: Family) -> list[str]:
    lines = [f"# HELP {family.name} {family.help_text}", f"# TYPE {family.name} {family.kind}"]
    for labels, value in family.series:
        ending = dict(labels).get("", "")
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels if name)
        lines.append(f"{family.name}{ending}{{{shown}}} {value:.17g}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""Requests are counted by what they asked for; nobody can fill the memory with names."""

from __future__ import annotations

from datetime import timedelta

from syncline.base.clock import EPOCH
from syncline.cluster.access.users import UserInfo
from syncline.cluster.serving.answered import Answered
from syncline.cluster.serving.metrics import MAX_SERIES, Metrics
from syncline.kube.client import Request

JO = UserInfo("jo", ("devs",), "u-1")
WEB = "/apis/apps/v1/namespaces/shop/deployments/web"


def answered(method: str, path: str, status: int = 200, **query: str) -> Answered:
    request = Request(method, path, query, {"user-agent": "kubectl"})
    return Answered(request, JO, status, EPOCH, EPOCH + timedelta(seconds=0.25), "127.0.0.1")


def lines(*observed: Answered) -> list[str]:
    metrics = Metrics(lambda: {"syncline_store_objects": ("Objects.", 12345678.0)})
    for each in observed:
        metrics.count(each)
    return [line for line in metrics.text().splitlines() if not line.startswith("#")]


def test_requests_are_counted_by_verb_resource_and_code() -> None:
    found = lines(answered("GET", WEB), answered("GET", WEB), answered("PATCH", f"{WEB}/scale"))
    assert found == [
        'apiserver_request_total{code="200",group="apps",resource="deployments",subresource="",verb="GET"} 2',
        'apiserver_request_total{code="200",group="apps",resource="deployments",subresource="scale",verb="PATCH"} 1',
        'apiserver_request_duration_seconds_sum{verb="GET"} 0.500000',
        'apiserver_request_duration_seconds_count{verb="GET"} 2',
        'apiserver_request_duration_seconds_sum{verb="PATCH"} 0.250000',
        'apiserver_request_duration_seconds_count{verb="PATCH"} 1',
        "syncline_store_objects 12345678",
    ]


def test_refused_requests_name_nothing_that_the_caller_made_up() -> None:
    (first, *_) = lines(*(answered("GET", f"/apis/x{n}/v1/made-up", 404) for n in range(3)))
    assert first == 'apiserver_request_total{code="404",group="",resource="",subresource="",verb="LIST"} 3'
    (first, *_) = lines(answered('"}\nBREW', WEB, 405))
    assert 'verb="OTHER"' in first


def test_series_are_bounded() -> None:
    metrics = Metrics(dict)
    for number in range(MAX_SERIES + 5):
        metrics.count(answered("GET", f"/apis/g/v1/r{number}"))
    assert len([line for line in metrics.text().splitlines() if line.startswith("apiserver_request_total{")]) == (
        MAX_SERIES + 1
    )

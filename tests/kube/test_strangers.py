"""Answers that the API did not give decide nothing."""

from __future__ import annotations

import pytest

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Forbidden, NotFound, TooManyRequests, Unanswered, Unauthorized
from syncline.kube.mapper import discover
from syncline.kube.objects import Obj
from syncline.kube.transport.strangers import begins_watch, checked, refused_watch

SERVER = "https://10.0.0.1:6443"
PODS = "/api/v1/namespaces/a/pods"
HTML = b"<!doctype html>\n<title>Log in</title>\x1b[31m"
STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"NotFound","code":404}'


def answer(status: int, raw: bytes, media: str = "text/html; charset=utf-8", **more: str) -> Response:
    return Response.encoded(status, raw, {"content-type": media, **more})


def refusal(
    status: int, raw: bytes, media: str = "text/html", method: str = "GET", path: str = PODS
) -> ApiError | None:
    found = checked(SERVER, Request(method, path), answer(status, raw, media), kinds=True)
    return None if found.ok else found.refusal()


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "raw", [HTML, b'{"kind":"PodList","ite', b"[]", b'"ok"', b"null", b"ok", b"{}", b'{"status":"ok"}'], ids=repr
)
def test_a_success_that_is_no_object_is_no_success(method: str, raw: bytes) -> None:
    assert isinstance(refusal(200, raw, method=method), Unanswered)


def test_the_sentence_names_the_address_and_what_was_found() -> None:
    error = refusal(200, HTML)
    found = "200 (text/html, 42 bytes that begin '<!doctype html> <title>Log in</title>?[31m')"
    assert str(error) == (
        f"https://10.0.0.1:6443 answered {found} instead of an object of the Kubernetes API; check the address and "
        "what stands before the server: a proxy, a gateway, a login page"
    )


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (302, Unanswered, 503),
        (400, Unanswered, 503),
        (401, Unauthorized, 401),
        (403, Forbidden, 403),
        (404, Unanswered, 503),
        (409, Unanswered, 503),
        (410, Unanswered, 503),
        (429, TooManyRequests, 429),
        (500, Unanswered, 500),
        (502, Unanswered, 502),
        (504, Unanswered, 504),
    ],
)
def test_the_error_page_of_a_proxy_is_no_answer_about_an_object(status: int, kind: type[ApiError], code: int) -> None:
    error = refusal(status, HTML)
    assert (type(error), error.code if error else 0) == (kind, code)


def test_what_an_api_says_is_left_as_it_is() -> None:
    assert refusal(200, b'{"kind":"PodList"}', "application/json") is None
    assert refusal(200, b"", method="DELETE") is None
    absent = refusal(404, STATUS, "application/json")
    assert (type(absent), str(absent)) == (NotFound, "no")
    assert isinstance(refusal(404, b"404 page not found\n", "text/plain"), NotFound)
    for text in (f"{PODS}/x/log", "/version", "/metrics", "/api/v1/nodes/n/proxy/metrics"):
        assert refusal(200, b"a line", "text/plain", path=text) is None
    assert isinstance(refusal(200, b"a line", "text/plain", path="/api/v1/namespaces/log/pods"), Unanswered)


def test_the_wait_that_a_server_asks_for_is_known_and_bounded() -> None:
    asked = checked(
        SERVER, Request("GET", PODS), Response.encoded(429, b"slow down", {"retry-after": "7"}), kinds=True
    ).refusal()
    assert (type(asked), asked.retry_after_s) == (TooManyRequests, 7.0)
    for header, wait in (("99999", 120.0), ("-1", 0.0), ("soon", 0.0), ("9" * 5000, 0.0)):
        assert Response.encoded(429, STATUS, {"retry-after": header}).refusal().retry_after_s == wait


def test_a_watch_of_html_does_not_begin() -> None:
    request = Request("GET", PODS, {"watch": "true"})
    assert begins_watch(request, 200, "application/json")
    assert not begins_watch(request, 200, "text/html")
    assert begins_watch(Request("GET", f"{PODS}/x/log"), 200, "text/plain")
    assert isinstance(refused_watch(SERVER, request, answer(200, HTML)), Unanswered)
    assert isinstance(refused_watch(SERVER, request, answer(404, STATUS, "application/json")), NotFound)


@pytest.mark.parametrize("body", [{}, {"status": "ok"}, {"kind": "Status"}, [], "ok"], ids=repr)
def test_who_says_nothing_of_what_it_serves_is_no_server_without_kinds(body: Obj) -> None:
    asking = discover()
    next(asking)
    with pytest.raises(Unanswered, match="something else than a Kubernetes API"):
        asking.send(Response.of(200, body))

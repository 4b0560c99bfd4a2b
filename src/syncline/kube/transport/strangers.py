"""Detects responses that do not come from the Kubernetes API but from a proxy, a login page or a gateway.

``kube/transport/http.py`` passes each response to :func:`checked`. Pure. A foreign response decides nothing: its 200 is
no success (a list without objects would look like the loss of all), its 404 no absence, its 500 no API error. Each
becomes :class:`~syncline.kube.errors.Unanswered` with one sentence that names the address and what was found.
"""

from __future__ import annotations

import re

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Forbidden, TooLarge, TooManyRequests, Unanswered, Unauthorized

TEXTS = re.compile(r"/api/v1/(namespaces/[^/]+/(pods|services)|nodes)/[^/]+/(log|proxy|exec|attach|portforward)(/|$)")
"""Subresources whose responses come from a program in a container."""
OBJECTS = re.compile(r"/apis?(/|$)")
"""Paths below which every success is a JSON object."""
WATCHED = ("application/json", "application/octet-stream")
"""Media types of a watch; the second one counts for a missing media type."""
SHOWN_CHARS = 60
NO_SUCH_PATH = b"404 page not found"
"""The plain-text response of an API server for a path that it does not serve."""
KEPT: dict[int, type[ApiError]] = {error.code: error for error in (Unauthorized, Forbidden, TooManyRequests, TooLarge)}
"""Errors that mean the same from any server, so that they are accepted also as plain text."""


def checked(server: str, request: Request, answer: Response, *, kinds: bool) -> Response:
    """Return the response, or :class:`Unanswered` if it does not come from the API. ``kinds``: a success must have a
    kind."""
    if not _is_about_objects(request) or _is_of_the_api(request, answer, kinds):
        return answer
    return Response.refused(_stranger(server, answer))


def begins_watch(request: Request, status: int, media: str) -> bool:
    """Return True if status and media type are those of a watch (or a log)."""
    return status == 200 and (media in WATCHED or not _is_about_objects(request))


def refused_watch(server: str, request: Request, answer: Response) -> ApiError:
    """Return the error of a watch that did not begin; the response may be a 200 of a foreign server."""
    if not answer.ok and (_is_of_the_api(request, answer, kinds=True) or not _is_about_objects(request)):
        return answer.refusal()
    return _stranger(server, answer)


def _is_about_objects(request: Request) -> bool:
    wanted = request.headers.get("accept", "application/json")
    return "json" in wanted and OBJECTS.match(request.path) is not None and TEXTS.match(request.path) is None


def _is_of_the_api(request: Request, answer: Response, kinds: bool) -> bool:
    if answer.ok:
        body = answer.obj
        named = isinstance(body, dict) and (not kinds or isinstance(body.get("kind"), str))
        return named or (not answer.raw.strip() and request.method not in ("GET", "HEAD"))
    if answer.status == 404 and answer.raw.strip() == NO_SUCH_PATH:
        return True
    return isinstance(answer.obj, dict) and answer.obj.get("kind") == "Status"


def _stranger(server: str, answer: Response) -> ApiError:
    media = answer.headers.get("content-type", "").partition(";")[0].strip() or "no media type"
    text = " ".join(answer.raw[: 4 * SHOWN_CHARS].decode("utf-8", "replace").split())
    begins = "".join(char if char.isprintable() else "?" for char in text)[:SHOWN_CHARS]
    found = f"{answer.status} ({media[:SHOWN_CHARS]}, {len(answer.raw)} bytes that begin {begins!r})"
    kind = KEPT.get(answer.status, Unanswered)
    error = kind(
        f"{server} answered {found} instead of an object of the Kubernetes API; check the address and what stands "
        "before the server: a proxy, a gateway, a login page",
        code=answer.status if kind is not Unanswered or answer.status >= 500 else None,
    )
    wait = Response(answer.status, headers=answer.headers).refusal().details.get("retryAfterSeconds")
    if wait is not None:
        error.details["retryAfterSeconds"] = wait
    return error

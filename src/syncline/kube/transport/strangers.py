"""Whether an answer is one of the Kubernetes API, or of something in between: a proxy, a login page, a gateway.

Called by ``kube/transport/http.py`` with each answer; pure. What a stranger says decides nothing: its 200 is no success
(a list without objects would look like the loss of all of them), its 404 is no absence, its 500 no refusal. All become
:class:`~syncline.kube.errors.Unanswered` with one sentence that names the address and what was found.
"""

from __future__ import annotations

import re

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Forbidden, TooLarge, TooManyRequests, Unanswered, Unauthorized

__all__ = ["WATCHED", "begins_watch", "checked", "refused_watch"]

TEXTS = re.compile(r"/api/v1/(namespaces/[^/]+/(pods|services)|nodes)/[^/]+/(log|proxy|exec|attach|portforward)(/|$)")
"""Subresources whose answers are those of a program in a container."""
OBJECTS = re.compile(r"/apis?(/|$)")
"""Paths below which every success is a JSON object."""
WATCHED = ("application/json", "application/octet-stream")
"""Media types of a watch, and what one without a media type counts as."""
SHOWN_CHARS = 60
NO_SUCH_PATH = b"404 page not found"
"""What an API server says of a path that it does not serve at all, in plain text."""
KEPT: dict[int, type[ApiError]] = {error.code: error for error in (Unauthorized, Forbidden, TooManyRequests, TooLarge)}
"""Refusals that mean the same a client that answers: also an API server may give them as plain text."""


def checked(server: str, request: Request, answer: Response, *, kinds: bool) -> Response:
    """The answer, or the refusal :class:`Unanswered` in place of one that the API did not give. ``kinds``: a success
    names the kind of its object."""
    if not _is_about_objects(request) or _is_of_the_api(request, answer, kinds):
        return answer
    return Response.refused(_stranger(server, answer))


def begins_watch(request: Request, status: int, media: str) -> bool:
    """Whether what follows are events (or the lines of a log), as far as the head of the answer tells."""
    return status == 200 and (media in WATCHED or not _is_about_objects(request))


def refused_watch(server: str, request: Request, answer: Response) -> ApiError:
    """Why a watch did not begin; the answer may be a success that is none."""
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

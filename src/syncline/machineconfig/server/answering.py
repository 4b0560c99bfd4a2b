"""Computes the config server's responses; pure. Entry point: :func:`served`.

``/config/POOL`` in the Ignition version of the Accept header, ``/healthz``, and 404 for other paths. Refusals have no
body, since any client may read them; :attr:`Answer.why` is for the log. Source: reference machine-config 4.10; Machine
Config Operator ``pkg/server/api.go`` and ``server.go``. Paths match as in Go's ``http.ServeMux``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote, unquote

from syncline.ignition.golang import clean
from syncline.ignition.jsontext import dump
from syncline.ignition.versions.negotiate import NegotiationError, negotiate
from syncline.machineconfig.server.joining import Choice, Unserved, choose, config_of
from syncline.machineconfig.server.world import World

_REDIRECT = "text/html; charset=utf-8"
_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Request:
    """A request. ``target``: path and query as sent. ``accept``: that header, or empty."""

    method: str
    target: str
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. For HEAD, ``body`` is that of GET: its size is sent, its content not. It contains a credential.
    ``why``: the reason of a refusal, never sent to the client."""

    status: int
    body: str = field(default="", repr=False)
    content_type: str = ""
    location: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A config to build. ``key``: equal keys give equal responses; None: do not cache."""

    pool: str
    choice: Choice

    @property
    def key(self) -> tuple[str | bool, ...] | None:
        return self.choice.key


def served(request: Request, world: World) -> Answer:
    """Return the response; never raises for the content of a request or the cluster."""
    found = looked_up(request, world)
    return made(found) if isinstance(found, Asked) else found


def looked_up(request: Request, world: World) -> Answer | Asked:
    """Return the config to build, or a final response; this part is fast."""
    path, _, query = request.target.partition("?")
    moved = _moved(path) if request.method != "CONNECT" else None
    if moved is not None:
        return _redirect(request.method, f"{moved}?{query}" if query else moved)
    if request.method not in _METHODS:
        return Answer(405, why=f"method {request.method}; allowed: GET, HEAD")
    # An escaped slash does not separate routes, but pools: a pool's name is the last element.
    first, *below = (unquote(part, errors="replace") for part in path[1:].split("/"))
    if first == "healthz" and not below:
        return Answer(200)
    if first != "config" or not below:
        return Answer(404, why="unknown path; there are /config/POOL and /healthz")
    pool = "/".join((first, *below)).rstrip("/").rpartition("/")[2]
    return _config(pool, request.accept, world)


def _config(pool: str, accept: str, world: World) -> Answer | Asked:
    try:
        version = negotiate(accept)
        return Asked(pool, choose(pool, version, world))
    except NegotiationError as problem:
        return Answer(400, why=str(problem))
    except Unserved as problem:
        return _refused(pool, version, problem)


def made(asked: Asked) -> Answer:
    """Return the response with the built config; this part is slow."""
    try:
        return Answer(200, dump(config_of(asked.choice)), "application/json")
    except Unserved as problem:
        return _refused(asked.pool, asked.choice.version, problem)


def _refused(pool: str, version: str, problem: Unserved) -> Answer:
    return Answer(problem.status, why=f"config of pool {pool!r} in version {version}: {problem}")


def _moved(path: str) -> str | None:
    """Return the canonical path if it differs, else None."""
    rooted = path if path.startswith("/") else f"/{path}"
    short = clean(rooted)
    if rooted.endswith("/") and short != "/":
        short += "/"
    if unquote(short) == "/config":
        return "/config/"
    return short if short != path else None


def _redirect(method: str, location: str) -> Answer:
    where = quote(location, safe="/%?=&:@!$'()*+,;~-._[]#")
    body = f'<a href="{escape(where)}">Temporary Redirect</a>.\n\n' if method in _METHODS else ""
    return Answer(307, body, _REDIRECT if body else "", where)

"""Asks one Git host for JSON on behalf of one question, with limits: :class:`Client`.

Requests go through ``sources/remote/web.py``: forbidden networks, TLS, proxies, sizes. Credentials are sent to the
origin of the host alone, and nothing is asked of another origin: neither a redirect nor a link to a next page leads
there. Blocking; for worker threads.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec

from syncline.base.clock import format_time, steady_now
from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.providers.model import ProviderError
from syncline.sources.providers.rates import is_refusal, rest_until
from syncline.sources.providers.reach import Kept, Reach, Who
from syncline.sources.remote.credentials import RepositoryAccess
from syncline.sources.remote.web import (
    NOT_MODIFIED,
    Line,
    WebAnswer,
    WebLimits,
    WebRequest,
    fetch,
    origin_of,
    shown_url,
)
from syncline.sources.workers.read_scope import current

T = TypeVar("T")
Query = Mapping[str, str | int | bool]
MAX_SAID = 300
"""Letters of a host's own message that are repeated."""
ONE_ANSWER_S = 120.0
_DENIED = frozenset(
    ("AccessDeniedException", "ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException")
)
"""AWS' names of errors that another status than 401 and 403 comes with."""


@dataclass(frozen=True, slots=True)
class Host:
    """Whom to ask: the name for messages, the base address, how requests are signed and TLS is checked."""

    name: str
    base: str
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """With the credentials."""
    secret: Secret | None = None
    """The credential itself, which messages mask."""
    insecure: bool = False
    ca_pem: str = ""
    identity: str = ""
    """Who asks, where each request is signed by itself."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A decoded answer. Header names are in lower case."""

    value: T
    headers: Mapping[str, str] = field(repr=False)


class Client:
    """One host, one question: counts its requests, items and time."""

    def __init__(self, host: Host, reach: Reach) -> None:
        self.host, self._reach = host, reach
        self._base = base_address(host.base)
        given = "\n".join([host.identity, *(f"{name}: {one}" for name, one in sorted(host.secret_headers.items()))])
        self._who: Who = (origin_of(self._base), hashlib.sha256(given.encode()).hexdigest() if given.strip() else "")
        self._access = RepositoryAccess(
            self._base,
            bearer_token=host.secret,
            insecure=host.insecure,
            ca_pem="\n".join(one for one in (reach.ca_pem, host.ca_pem) if one),
            proxy=reach.proxy,
            no_proxy=reach.no_proxy,
        )
        self._limit_s = min(reach.limits.wall_s, current().left_s)
        self._until = steady_now(reach.clock) + timedelta(seconds=self._limit_s)
        self._requests = self._items = 0
        self._line = Line()

    def close(self) -> None:
        """Close the connection to the host."""
        self._line.close()

    def get(self, kind: type[T], path: str, query: Query | None = None) -> Reply[T]:
        """Return the decoded answer. Raises :class:`SourceError`."""
        return self.decoded(kind, self._asked("GET", path, query or {}))

    def find(self, kind: type[T], path: str, query: Query | None = None, *, empty: bool = False) -> Reply[T] | None:
        """Return the decoded answer, None for 404 and, where the API says so by an ``empty`` body, for that. Raises
        :class:`SourceError`."""
        answer = self._asked("GET", path, query or {}, accept=(404,))
        nothing = answer.status == 404 or (empty and not answer.body.strip())
        return None if nothing else self.decoded(kind, answer)

    def exists(self, path: str, query: Query | None = None, *, method: str = "HEAD") -> bool:
        """Return False for 404. Raises :class:`SourceError`."""
        return self._asked(method, path, query or {}, accept=(404,)).ok

    def post(self, body: bytes, headers: Mapping[str, str], secret_headers: Mapping[str, str]) -> WebAnswer:
        """Return the answer to a POST to the base address, signed by itself. Raises :class:`SourceError`."""
        return self._asked("POST", "", {}, body, headers=headers, secret_headers=secret_headers)

    @property
    def is_anonymous(self) -> bool:
        return not self._who[1]

    def below(self, url: str) -> str:
        """Return what follows the base address in ``url``, a link of the host to its next page. Raises
        :class:`SourceError` for another origin, which is never asked."""
        if origin_of(url) != self._who[0]:
            what = f"links to {shown_url(url)} as the next page, which is another origin"
            raise ProviderError(Problem.REFUSED, f"{self.host.name}: {shown_url(self._base)} {what}")
        parts = urlsplit(url)
        path = parts.path.removeprefix(urlsplit(self._base).path)
        return f"{path}?{parts.query}" if parts.query else path

    def listed(self, count: int) -> None:
        """Count items of a list. Raises :class:`SourceError` above the limit."""
        self._items += count
        if self._items > self._reach.limits.items:
            raise self._too_many(f"lists more than {self._reach.limits.items} items")

    def pages(self, kind: type[list[T]], path: str, query: Query) -> Iterator[T]:
        """Yield the items of all pages, as GitHub, GitLab and Gitea number them: in ``X-Next-Page``, or in the link to
        the next page, of which only the number counts. Raises :class:`SourceError`."""
        page = 1
        for _ in range(self._reach.limits.pages):
            reply = self.get(kind, path, {**query, "page": page} if page > 1 else query)
            self.listed(len(reply.value))
            yield from reply.value
            following = _next_page(reply.headers)
            if following is None:
                return
            if following <= page:
                raise self.wrong(path, f"page {page} names page {following} as the next one")
            page = following
        raise self.many_pages(path)

    def many_pages(self, path: str) -> ProviderError:
        return self._too_many(f"{path} has more than {self._reach.limits.pages} pages")

    def page_numbers(self) -> range:
        return range(self._reach.limits.pages)

    def wrong(self, path: str, what: str) -> ProviderError:
        """Return the error for an answer that the host's API does not allow."""
        return ProviderError(Problem.INVALID, f"{self.host.name}: {shown_url(self._base + path)}: {what}")

    def _too_many(self, what: str) -> ProviderError:
        fix = "narrow the generator down: a group, a topic, a project, or several generators"
        return ProviderError(Problem.TOO_LARGE, f"{self.host.name}: {shown_url(self._base)}: {what}", fix=fix)

    def decoded(self, kind: type[T], answer: WebAnswer) -> Reply[T]:
        where = f"{self.host.name}: {shown_url(answer.url)}"
        if answer.status == 203 or "text/html" in answer.headers.get("content-type", ""):
            what = "answers with a web page, as if a person had to sign in"
            raise ProviderError(Problem.DENIED, f"{where} {what}", fix="check the token and the address of the API")
        try:
            return Reply(msgspec.json.decode(answer.body, type=kind), answer.headers)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            what = str(error) or type(error).__name__
            raise ProviderError(Problem.INVALID, f"{where}: the answer is not what its API promises: {what}") from None

    def _asked(
        self,
        method: str,
        path: str,
        query: Query,
        body: bytes = b"",
        *,
        accept: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
        secret_headers: Mapping[str, str] | None = None,
    ) -> WebAnswer:
        url = self._base + path + (f"?{_encoded(query)}" if query else "")
        kept = self._reach.memory.kept(url, self._who) if method == "GET" else None
        conditional = {"If-None-Match": kept.etag} if kept is not None else {}
        answer = fetch(
            WebRequest(
                url,
                self.host.name,
                self._access,
                signed=False,
                method=method,
                headers={**self.host.headers, **conditional, **(headers or {})},
                secret_headers={**self.host.secret_headers, **(secret_headers or {})},
                body=body,
                secret_body=True,
                limits=self._left(),
                networks=self._reach.networks,
                same_origin=True,
                line=self._line,
            )
        )
        if answer.status == NOT_MODIFIED and kept is not None:
            self._note_rate(answer, "")
            return WebAnswer(200, kept.headers, kept.body, answer.url)
        said = "" if answer.ok else _said(answer.body)
        self._note_rate(answer, said)
        if method == "GET" and answer.status == 200 and answer.headers.get("etag"):
            self._reach.memory.keep(url, self._who, Kept(answer.headers["etag"], answer.headers, answer.body))
        if not answer.ok and answer.status not in accept:
            raise self._failure(method, answer, said)
        return answer

    def _left(self) -> WebLimits:
        """Return the limits of the next request. Raises :class:`SourceError` if there may be none."""
        limits, memory = self._reach.limits, self._reach.memory
        now, until = self._reach.clock.now(), memory.rests_until(self._who)
        if until is not None and now < until:
            what = f"wants no request before {format_time(until)} (the rate limit of these credentials)"
            raise ProviderError(Problem.UNREACHABLE, f"{self.host.name}: {self._who[0]} {what}", retry_at=until)
        self._requests += 1
        if self._requests > limits.requests:
            raise self._too_many(f"needs more than {limits.requests} requests")
        left_s = (self._until - steady_now(self._reach.clock)).total_seconds()
        if left_s <= 0:
            raise self._too_many(f"is not listed within {self._limit_s:.0f} seconds")
        return WebLimits(limits.bytes, limits.wait_s, min(left_s, ONE_ANSWER_S))

    def _note_rate(self, answer: WebAnswer, said: str) -> None:
        until = rest_until(answer.status, answer.headers, said, self._reach.clock.now())
        if until is not None:
            self._reach.memory.rest(self._who, until)

    def _failure(self, method: str, answer: WebAnswer, said: str) -> ProviderError:
        text = f"{self.host.name}: {method} {shown_url(answer.url)}: {answer.said}"
        text = self._access.mask(f"{text}: {said}" if said else text)
        until = rest_until(answer.status, answer.headers, said, self._reach.clock.now())
        if until is not None and is_refusal(answer.status, answer.headers, said):
            text = f"{text} (rate limit; it is asked again at {format_time(until)})"
            fix = "give it a token: those without one share a small quota" if self.is_anonymous else ""
            return ProviderError(Problem.UNREACHABLE, text, retry_at=until, fix=fix)
        kind = _kind(answer)
        if answer.status in (401, 403) or kind in _DENIED:
            return ProviderError(Problem.DENIED, text, kind=kind, fix="check the token and its scopes")
        missing = answer.status in (404, 410)
        problem = Problem.UNREACHABLE if missing or answer.status >= 500 or answer.status == 408 else Problem.INVALID
        return ProviderError(problem, text, not_found=missing, kind=kind)


@contextlib.contextmanager
def during(what: str) -> Iterator[None]:
    """Put ``error WHAT: `` before the message of a :class:`SourceError`, as upstream."""
    try:
        yield
    except ProviderError as error:
        raise error.during(what) from None
    except SourceError as error:
        raise ProviderError(error.problem, f"error {what}: {error.message}", field=error.field, fix=error.fix) from None


def base_address(api: str) -> str:
    """Return the address with one slash at its end. Raises :class:`SourceError` unless it is http or https."""
    try:
        parts = urlsplit(api)
        invalid = parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment
    except ValueError:
        invalid = True
    if invalid or any(ord(letter) <= 32 or ord(letter) == 127 for letter in api):
        message = f"api {shown_url(api)!r} is no http or https address without query"
        raise ProviderError(Problem.REFUSED, message, fix="give an address such as https://git.example.com/")
    return api.rstrip("/") + "/"


def segment(text: str, what: str) -> str:
    """Return ``text`` as one segment of a path. Raises :class:`SourceError` for what would name another place."""
    if text in ("", ".", "..") or any(ord(letter) < 32 for letter in text):
        raise ProviderError(Problem.INVALID, f"{what} {text!r} is no name", fix=f"give the name of the {what}")
    return quote(text, safe="~")


def file_path(path: str) -> str:
    """Return the path of a file for an address. Raises :class:`SourceError` for one that leaves the repository."""
    return "/".join(segment(part, "path") for part in path.strip("/").split("/") if part)


def _encoded(query: Query) -> str:
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
    return urlencode(texts, quote_via=quote)


def _next_page(headers: Mapping[str, str]) -> int | None:
    """Return the number of the next page; None: this was the last one."""
    if "x-next-page" in headers:
        number = headers["x-next-page"].strip()
        return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None
    for link in headers.get("link", "").split(","):
        address, *attributes = (part.strip() for part in link.split(";"))
        if 'rel="next"' not in attributes or not (address.startswith("<") and address.endswith(">")):
            continue
        with contextlib.suppress(ValueError):
            return int(parse_qs(urlsplit(address[1:-1]).query)["page"][0][:9])
        return None
    return None


def _kind(answer: WebAnswer) -> str:
    """Return the name that Azure DevOps and AWS give an error."""
    try:
        value = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
        found = next((msgspec.json.decode(value[key], type=str) for key in ("typeKey", "__type") if key in value), "")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return found.rpartition("#")[2]


def _said(body: bytes) -> str:
    """Return the message in the body of an error: ``message``, ``error``, or the first of ``errors``."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    found = value if isinstance(value, dict) else {}
    errors = found.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict) and "message" not in found:
        found = errors[0]
    said = next((found[key] for key in ("message", "Message", "error", "error_description") if found.get(key)), "")
    if isinstance(said, dict):
        said = said.get("message", "")
    text = said if isinstance(said, str) else ""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_SAID])

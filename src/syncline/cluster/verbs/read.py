"""get and list.

``api`` calls it; it reads the store's memory. All pages of a chunked list show one revision, as in etcd.
"""

from __future__ import annotations

from dataclasses import replace

from syncline.cluster.resources.registry import Resource
from syncline.cluster.serving.answers import list_answer, object_answer
from syncline.cluster.serving.negotiate import Form
from syncline.cluster.storage.store import Compacted, Store, Stored
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import ContinueToken, ListOptions, list_options, unreadable_revision
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, BadRequest, FieldCause, Gone
from syncline.kube.objects import Obj
from syncline.kube.selectors import FieldSelector, Selector
from syncline.kube.transport.elsewhere import weigh

ANY_REVISION = -1
"""In a continue token: continue at the current revision."""

ROW_SHARE = 4
"""A table row costs this fraction of encoding the whole object."""

PAGE = 500
"""Objects filtered in one step while a selector excludes most of them."""


def get(x: Exchange) -> Response:
    check_revision(x)
    current = x.current()
    _weigh(x, [current])
    return object_answer(x, 200, current)


def check_revision(x: Exchange) -> None:
    """Check the query's resourceVersion, the oldest acceptable version of a single object."""
    revision = x.request.query.get("resourceVersion", "") if x.request.query else ""
    wrong = unreadable_revision(revision)
    if wrong and x.resource.storage == "/events":  # Kubernetes reads events past its cache.
        raise BadRequest(f"invalid resource version: resourceVersion: {wrong}")
    if wrong:
        raise ApiError(f"resourceVersion: {wrong}", reason="")
    check_not_ahead(x.store, revision)


def _weigh(x: Exchange, stored: list[Stored]) -> None:
    """Count the size of objects that must be converted; JSON of whole objects is sent as stored."""
    if not x.accepted.plain:
        size = sum(len(one.raw) for one in stored)
        weigh(size if x.accepted.form is Form.YAML else size // ROW_SHARE)


def check_not_ahead(store: Store, revision: str) -> None:
    """Refuse a revision newer than the store's, as of another cluster (storage.NewTooLargeResourceVersionError)."""
    if revision and int(revision) > store.revision:
        raise ApiError(
            f"Timeout: Too large resource version: {revision}, current: {store.revision}",
            code=504,
            reason="Timeout",
            causes=[FieldCause("ResourceVersionTooLarge", "Too large resource version")],
            retry_after_s=1,
        )


class Matcher:
    """Matches stored objects against both selectors of a request; labels are read without decoding."""

    __slots__ = ("_fields", "_labels", "_resource", "everything")

    def __init__(self, resource: Resource, labels: Selector, fields: FieldSelector) -> None:
        self._resource = resource
        self._labels = labels
        self._fields = fields
        self.everything = labels.empty and fields.empty

    def __call__(self, stored: Stored) -> bool:
        if self.everything:
            return True
        if not self._labels.empty and not self._labels.matches(stored.labels):
            return False
        return self._fields.empty or self._matches_fields(stored)

    def _matches_fields(self, stored: Stored) -> bool:
        name = self._fields.exact("metadata.name")
        if name is not None and name != stored.key.name:
            return False
        custom = self._resource.custom is not None
        return self._resource.fields.matches(self._fields, self._resource.shown(stored.obj) if custom else stored.obj)


def list_objects(x: Exchange) -> Response:
    options = list_options(x.request.query, fits=x.resource.fields.check)
    matcher = Matcher(x.resource, options.labels, options.fields)
    if x.resource.computed is not None:  # Whole, as a server without storage lists: nothing is kept between pages.
        return _answer(x, list(filter(matcher, x.resource.computed(x.namespace))), x.store.revision, None, 0, matcher)
    revision = _revision(x.store, options)
    try:
        if not options.limit and options.token is None:
            stored = _all(x, matcher, options, revision)
            return _answer(x, stored, revision, None, 0, matcher)
        return _page(x, matcher, options, revision)
    except Compacted:
        raise _too_old(options) from None


def _revision(store: Store, options: ListOptions) -> int:
    if options.token is not None:
        return store.revision if options.token.revision == ANY_REVISION else options.token.revision
    check_not_ahead(store, options.revision)
    if options.match == "Exact" or (options.limit and options.revision not in ("", "0") and not options.match):
        return int(options.revision)
    return store.revision


def _at(store: Store, revision: int) -> int | None:
    return None if revision == store.revision else revision


def _all(x: Exchange, matcher: Matcher, options: ListOptions, revision: int) -> list[Stored]:
    name = options.fields.exact("metadata.name")
    at = _at(x.store, revision)
    if name is not None and x.namespace and at is None:
        one = x.store.get(x.key(name))
        return [one] if one is not None and matcher(one) else []
    found = x.store.list_page(x.resource.storage, x.namespace, at=at)
    return found if matcher.everything else [stored for stored in found if matcher(stored)]


def _page(x: Exchange, matcher: Matcher, options: ListOptions, revision: int) -> Response:
    at = _at(x.store, revision)
    after = options.token.after if options.token else None
    wanted = options.limit or 0
    found: list[Stored] = []
    while True:
        step = x.store.list_page(x.resource.storage, x.namespace, after=after, limit=max(wanted + 1, PAGE), at=at)
        found.extend(stored for stored in step if matcher(stored))
        if (wanted and len(found) > wanted) or len(step) < max(wanted + 1, PAGE):
            break
        after = (step[-1].key.namespace, step[-1].key.name)
    more = bool(wanted) and len(found) > wanted
    page = found[:wanted] if wanted else found
    if not more:
        return _answer(x, page, revision, None, 0, matcher)
    token = options.token
    total = token.left if token is not None and token.revision != ANY_REVISION else _total(x, revision, at, token)
    left = total - len(page)
    last = page[-1].key
    return _answer(x, page, revision, ContinueToken(revision, (last.namespace, last.name), left), left, matcher)


def _total(x: Exchange, revision: int, at: int | None, token: ContinueToken | None) -> int:
    """Return the number of objects after the position from which an inconsistent list continues."""
    if token is not None:
        return len(x.store.list_page(x.resource.storage, x.namespace, after=token.after, at=at))
    if at is None:
        return x.store.count(x.resource.storage, x.namespace)
    return len(x.store.list_page(x.resource.storage, x.namespace, at=revision))


def _answer(
    x: Exchange, stored: list[Stored], revision: int, token: ContinueToken | None, left: int, matcher: Matcher
) -> Response:
    metadata: Obj = {"resourceVersion": str(revision)}
    if token is not None:
        metadata["continue"] = token.encode()
        if matcher.everything:
            metadata["remainingItemCount"] = left
    _weigh(x, stored)
    return list_answer(x, stored, metadata, x.store.revision)


def _too_old(options: ListOptions) -> Gone:
    if options.token is not None:
        return Gone(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
            "that were created, modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list.",
            continue_token=replace(options.token, revision=ANY_REVISION).encode(),
        )
    return Gone("The resourceVersion for the provided list is too old.")

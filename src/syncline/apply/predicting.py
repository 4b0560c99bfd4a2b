"""Server-side diff: predictions of a sync by the API server (compare option ``ServerSideDiff=true``).

An Application's plan names the missing predictions; the handler requests them as dry runs of a server-side apply, with
the rights of a sync; the next comparison reads them. A prediction is requested again if the manifest, the live object
or the account changes, or on a refresh, as upstream. An object that changes all the time is compared by its last
prediction in between, so that requests never block an Application. The cache is bounded and lost with the process.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

import msgspec

from syncline.apply.diff import Prediction
from syncline.apply.diff.model import MANAGER
from syncline.base.action import Action
from syncline.base.clock import Clock
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, TooManyRequests, Unavailable
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, gvk_of, name_of, ref_of, resource_version, uid_of

MAX_KEPT = 50_000
"""Cached predictions, of about 3 kB each."""
MAX_OBJECTS = 10_000
"""Objects of one Application with predictions; further ones are compared here."""
MAX_ASKED = 100
"""Requests of one reconcile; the next one continues."""
AGAIN_S = 60.0
"""Seconds until a refused request is repeated: a webhook may be back."""
REST_S, REST_EACH_S = 3.0, 0.05
"""Seconds for which an object that changes again is compared by its last prediction, and the addition per object of its
Application: requests take less than a fifth of the time."""
STALE_S = 5.0
"""Seconds that a prediction for a newer live object waits until the watch shows that object."""


@dataclass(frozen=True, slots=True)
class Predict(Action):
    """Predict the result of a server-side apply of ``target``; changes nothing."""

    question: str
    target: Obj = field(repr=False)
    version: str
    """resourceVersion of the live object to compare with."""
    reason: str = "ServerSideDiff=true"

    def describe(self) -> str:
        return f"ask what an apply would make of {ref_of(self.target)}"


@dataclass(frozen=True, slots=True)
class Kept:
    answer: Prediction
    at: datetime
    asked: str
    """resourceVersion of the live object as observed here."""
    version: str
    """resourceVersion of the state that was predicted from."""


@dataclass(frozen=True, slots=True)
class Missing:
    """``asked``: predictions to request now; ``waits``: one is newer than the observed object; ``later_s``: seconds
    until a changed object is predicted again."""

    asked: tuple[Predict, ...] = ()
    waits: str = ""
    later_s: float | None = None


class PredictionCache:
    """Cached predictions by question."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._limit = limit

    def known(self) -> Mapping[str, Kept]:
        """Return the cached predictions, for use within one reconcile."""
        return MappingProxyType(self._kept)

    def put(self, name: str, kept: Kept) -> None:
        self._kept[name] = kept
        self._kept.move_to_end(name)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


def question(target: Obj, live: Obj, place: str) -> str:
    """Return the key of a prediction, independent of the live object's version; ``place``: cluster, user and refresh
    request."""
    content = msgspec.json.encode(target, order="deterministic")
    digest = hashlib.blake2b(content, digest_size=16)
    digest.update("\0".join(("", uid_of(live), place)).encode())
    return digest.hexdigest()


def missing(
    book: Mapping[str, Kept], pairs: list[tuple[Obj, Obj]], place: str, now: datetime, limit: int = MAX_ASKED
) -> Missing:
    """Return the pairs (manifest, live object) that need predictions before they can be compared."""
    asked: list[Predict] = []
    later: list[float] = []
    waits = ""
    rest_s = REST_S + REST_EACH_S * min(len(pairs), MAX_OBJECTS)
    for target, live in pairs[:MAX_OBJECTS]:
        name, version = question(target, live, place), resource_version(live)
        known = book.get(name)
        age_s = (now - known.at).total_seconds() if known is not None else 0.0
        current = known is not None and version in (known.version, known.asked)
        again_s = AGAIN_S if known is not None and known.answer.error else None
        due_s = 0.0 if known is None else again_s if current else rest_s
        if due_s is not None and age_s >= due_s:
            asked.append(Predict(name, target, version))
        elif not current and due_s is not None:
            later.append(due_s - age_s)
        elif known is not None and version != known.version and age_s < STALE_S:
            waits = f"{gvk_of(live).kind}/{name_of(live)} has changed; its new state is not seen yet"
        if len(asked) == limit:
            break
    return Missing(tuple(asked), "" if asked else waits, min(later, default=None))


def answers(book: Mapping[str, Kept], place: str) -> Callable[[Obj, Obj], Prediction | None]:
    """Return a function that looks up predictions for a comparison."""

    def find(target: Obj, live: Obj) -> Prediction | None:
        known = book.get(question(target, live, place))
        return known.answer if known is not None else None

    return find


class PredictHandler:
    """Performs :class:`Predict` on one cluster, whose kinds ``mapper`` knows. A refusal is a result; without a response
    the error is raised and the reconcile is repeated."""

    def __init__(self, mapper: Mapper, book: PredictionCache, clock: Clock) -> None:
        self._mapper, self._book, self._clock = mapper, book, clock

    def handle(self, action: Predict) -> Generator[Request, Response, None]:
        found, error = yield from _asked(self._mapper, action.target)
        content = b"" if found is None else msgspec.json.encode(found)
        # A refused request has another name, so that no cached result stands for both.
        state = resource_version(found) if found is not None else "refused"
        answer = Prediction(f"{action.question}/{action.version}/{state}", content, error)
        about = (resource_version(found) if found is not None else "") or action.version
        self._book.put(action.question, Kept(answer, self._clock.now(), action.version, about))


def _asked(mapper: Mapper, target: Obj) -> Generator[Request, Response, tuple[Obj | None, str]]:
    gvk = gvk_of(target)
    info = mapper.find(gvk)
    if info is None:
        return None, f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"'
    answer = yield client.server_side_apply(info, target, field_manager=MANAGER, force=True, dry_run=True)
    try:
        return dict(answer.or_raise()), ""
    except (Unavailable, TooManyRequests):
        raise
    except ApiError as error:
        return None, str(error)

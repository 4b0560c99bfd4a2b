"""Tens of thousands of hostile requests at the API without sockets: each is answered, quickly, and changes nothing when
it is refused.

What must hold for each: a status; never 500 but where Kubernetes has it; no trace in the log; an answer that can be
encoded and read; the store as before unless the answer is a success; and an end within a time of the processor.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec
import pytest
from tests.cluster.hostile.inputs import Inputs, valid_objects

from syncline.assembly.embedded.core import build_core
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request, Response

SEEDS = int(os.environ.get("SYNCLINE_FUZZ_SEEDS", "8"))
"""More for a night: ``SYNCLINE_FUZZ_SEEDS=1000 pytest tests/cluster/hostile``."""
PER_SEED = 2_500
DEADLINE_S = 3.0
"""Of the processor, for one request: the slowest that Kubernetes answers takes a tenth."""

KUBERNETES_SAYS_500 = re.compile(
    r"resourceVersion: Invalid value: |strconv.ParseUint: |content is not a list"
    r"|unknown patch type: |map: .* does not contain declared merge key|list element types are not identical"
    r"|expected a (list|\[\]interface)|merging lists cannot yet be specified|failed to create typed patch object"
    r"|target\.(name|kind): ",
    re.DOTALL,
)
"""Refusals that Kubernetes answers with 500 and no reason: plain Go errors of its patch library and storage."""
SHAPE_OF_ANSWER = ("you requested PartialObjectMetadata", "Unable to convert to Table as requested")
"""Kubernetes writes first and then finds that it cannot answer in the form asked for, and so do we."""
NOBODY = UserInfo("nobody", ("system:authenticated",))


class TooSlow(BaseException):
    """Not an Exception: the API must not answer it as a bug."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """By the processor's time, so that a busy machine does not count."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Traces(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []
        self._ours = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._ours:  # other threads are clusters of other tests
            self.records.append(self.format(record))


@contextmanager
def no_traces() -> Iterator[Traces]:
    traces = Traces()
    loggers = [logging.getLogger(name) for name in ("syncline", "syncline.cluster", "syncline.serve")]
    for logger in loggers:
        logger.addHandler(traces)
    try:
        yield traces
    finally:
        for logger in loggers:
            logger.removeHandler(traces)


class Target:
    """A bootstrapped cluster with one of each valid object in it."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.core = build_core(store=Store(), clock=clock, entropy=Entropy(1), keys=create_keys(clock.now()))
        self.core.bootstrap(port=6443)
        self.refill()

    def refill(self) -> None:
        for path, obj in valid_objects():
            self.core.api.handle(Request("POST", path, body=msgspec.json.encode(obj)), ADMIN)
        account = {"metadata": {"name": "default"}}
        self.core.api.handle(Request("POST", "/api/v1/namespaces/default/serviceaccounts", body=account), ADMIN)

    def ask(self, request: Request, user: UserInfo = ADMIN) -> Response:
        answer = self.core.api.handle(request, user)
        if answer.stream is not None:
            answer.stream.take(50)
            answer.stream.close()
        return answer


def problem(target: Target, request: Request, user: UserInfo, traces: Traces) -> tuple[str, int]:
    """What is wrong with the answer (empty: nothing) and its status."""
    store = target.core.store
    before = store.revision
    try:
        with deadline(DEADLINE_S):
            answer = target.ask(request, user)
            raw = answer.raw if answer.stream is None and answer.session is None else b""
    except TooSlow:
        return "it took too long", 0
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}", 0
    if traces.records:
        return f"it left a trace: {traces.records.pop()[-1500:]}", answer.status
    message = str(answer.obj.get("message")) if answer.status >= 400 and isinstance(answer.obj, dict) else ""
    if answer.status == 500 and ("reason" in answer.obj or not KUBERNETES_SAYS_500.match(message)):
        return message[:500], answer.status
    if store.revision != before and not answer.ok and not message.startswith(SHAPE_OF_ANSWER):
        return "it was refused and changed the store", answer.status
    if store.revision != before and request.method in ("GET", "HEAD", "OPTIONS"):
        return "reading changed the store", answer.status
    if raw and answer.headers.get("content-type", "application/json") == "application/json":
        try:
            msgspec.json.decode(raw)
        except msgspec.DecodeError as error:
            return f"its answer cannot be read: {error}", answer.status
    return "", answer.status


def shown(request: Request) -> str:
    body = request.body if request.body is None else request.body[:600]
    return f"{request.method} {request.path[:300]!r} {str(request.query)[:300]} {request.headers} {body!r}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hostile_requests_are_answered_and_change_nothing_when_refused(
    seed: int, figure: Callable[[str, str], None]
) -> None:
    target = Target()
    inputs = Inputs(seed)
    groups: Counter[str] = Counter()
    with no_traces() as traces:
        for number in range(PER_SEED):
            request = inputs.request()
            user = ADMIN if inputs.chance.random() < 0.95 else NOBODY
            wrong, status = problem(target, request, user, traces)
            assert not wrong, f"seed {seed}, request {number}: {wrong}\n{shown(request)}"
            groups[f"{status // 100}xx"] += 1
            if number % 250 == 249:
                target.refill()
    assert min(groups["2xx"], groups["4xx"]) > PER_SEED // 10, "requests must reach all of the API"
    told = ", ".join(f"{count} {group}" for group, count in sorted(groups.items()))
    figure(f"hostile requests without sockets, seed {seed}", f"{PER_SEED} answered, {told}")


def test_the_same_seed_makes_the_same_requests() -> None:
    first, second = Inputs(7), Inputs(7)
    assert [first.request() for _ in range(200)] == [second.request() for _ in range(200)]

"""Rate limits and conditional requests: what hosts say, when they are asked again, what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.asking import pull_requests
from syncline.sources.providers.model import ProviderError, PullRequest, SecretReference
from syncline.sources.providers.rates import LONGEST_REST, rest_until
from syncline.sources.providers.reach import Kept, Memory, Reach

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)
EPOCH = str(int(LATER.timestamp()))
QUOTA = "API rate limit exceeded for user ID 1."


@pytest.mark.parametrize(
    ("status", "headers", "said", "seconds"),
    [
        (200, {}, "", None),
        (200, {"x-ratelimit-remaining": "4999", "x-ratelimit-reset": EPOCH}, "", None),
        (200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": EPOCH}, "", 600),
        (200, {"ratelimit-remaining": "0", "ratelimit-reset": EPOCH}, "", 600),
        (200, {"ratelimit-remaining": "0"}, "", None),
        (304, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": EPOCH}, "", 600),
        (200, {"retry-after": "30"}, "", None),
        (403, {}, "Resource not accessible by integration", None),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": EPOCH}, QUOTA, 600),
        (403, {"retry-after": "45"}, "You have exceeded a secondary rate limit.", 45),
        (403, {"x-ratelimit-remaining": "60"}, "You have exceeded a secondary rate limit.", 60),
        (429, {}, "", 60),
        (429, {"retry-after": "120"}, "", 120),
        (429, {"retry-after": "30", "x-ratelimit-remaining": "0", "x-ratelimit-reset": EPOCH}, "", 600),
        (429, {"ratelimit-reset": EPOCH, "ratelimit-remaining": "0"}, "Retry later", 600),
        (429, {"ratelimit-remaining": "0", "ratelimit-reset": "17"}, "", 17),
        (429, {"retry-after": "Sun, 01 Mar 2026 12:05:00 GMT"}, "", 300),
        (429, {"retry-after": "soon"}, "", 60),
        (429, {"retry-after": "-5"}, "", 60),
        (429, {"retry-after": "99999999999999999999"}, "", LONGEST_REST.total_seconds()),
        (429, {"retry-after": "Fri, 01 Mar 2999 12:05:00 GMT"}, "", LONGEST_REST.total_seconds()),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000001"}, "", 1),
        (503, {}, "", None),
        (503, {"retry-after": "20"}, "", 20),
        (400, {}, "Rate exceeded", 60),
        (400, {}, "Bad request", None),
        (404, {"retry-after": "20"}, "", None),
    ],
)
def test_headers_and_status_say_when_to_ask_again(
    status: int, headers: Mapping[str, str], said: str, seconds: float | None
) -> None:
    until = rest_until(status, headers, said, NOW)
    assert (None if until is None else (until - NOW).total_seconds()) == seconds


# -- whole requests -------------------------------------------------------------------------------------------------

SECRETS = {
    SecretReference("team", "a", "token"): Secret("token-a"),
    SecretReference("team", "b", "token"): Secret("token-b"),
}
PULLS = "/api/v3/repos/acme/web/pulls"
ONE = {"number": 1, "title": "t", "head": {"ref": "f", "sha": "a"}, "base": {"ref": "main", "sha": "b"}}


def ask(host: ReplayHost, reach: Reach, secret: str = "a", **more: Any) -> tuple[PullRequest, ...]:
    reference = {"tokenRef": {"secretName": secret, "key": "token"}} if secret else {}
    return pull_requests({"github": {"owner": "acme", "repo": "web", "api": host.url, **reference}}, SECRETS, reach)


def refused(host: ReplayHost, reach: Reach, secret: str = "a") -> ProviderError:
    with pytest.raises(ProviderError) as error:
        ask(host, reach, secret)
    assert error.value.problem is Problem.UNREACHABLE
    return error.value


def test_after_a_refusal_nothing_is_asked_with_these_credentials_before_the_reset(serve: Serve) -> None:
    clock = VirtualClock(NOW)
    reach = Reach(clock=clock)
    exhausted = Replay({"message": QUOTA}, 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": EPOCH})
    host = serve({PULLS: [exhausted, Replay([ONE])]})
    first = refused(host, reach)
    assert first.retry_at == LATER and not first.not_found
    assert first.message.endswith(f"{QUOTA} (rate limit; it is asked again at 2026-03-01T12:10:00Z)")
    clock.set(LATER - timedelta(seconds=1))
    second = refused(host, reach)
    assert second.retry_at == LATER
    assert "wants no request before 2026-03-01T12:10:00Z" in second.message
    assert len(host.asked) == 1
    assert len(ask(host, reach, "b")) == 1, "other credentials have a quota of their own"
    clock.set(LATER)
    assert len(ask(host, reach)) == 1


def test_the_last_of_a_quota_is_used_but_the_next_request_waits(serve: Serve) -> None:
    clock = VirtualClock(NOW)
    reach = Reach(clock=clock)
    last = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": EPOCH}
    host = serve({PULLS: Replay([ONE], headers=last)})
    assert len(ask(host, reach)) == 1
    assert refused(host, reach).retry_at == LATER
    assert len(host.asked) == 1


def test_a_quota_that_ends_between_two_pages_gives_no_half_answer(serve: Serve) -> None:
    reach = Reach(clock=VirtualClock(NOW))
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": EPOCH, "Link": '<http://x/?page=2>; rel="next"'}
    host = serve({PULLS: Replay([ONE], headers=headers)})
    error = refused(host, reach)
    assert error.message.startswith("error listing pull requests for acme/web: GitHub: http://127.0.0.1")
    assert error.retry_at == LATER


def test_without_a_token_the_error_says_how_to_get_a_larger_quota(serve: Serve) -> None:
    host = serve({PULLS: Replay({"message": QUOTA}, 429)})
    error = refused(host, Reach(clock=VirtualClock(NOW)), "")
    assert error.fix == "give it a token: those without one share a small quota"
    assert refused(host, Reach(clock=VirtualClock(NOW))).fix == ""


def test_a_missing_right_is_no_rate_limit(serve: Serve) -> None:
    host = serve({PULLS: Replay({"message": "Resource not accessible by personal access token"}, 403)})
    reach = Reach(clock=VirtualClock(NOW))
    for _ in range(2):
        with pytest.raises(ProviderError) as error:
            ask(host, reach)
        assert error.value.problem is Problem.DENIED and error.value.retry_at is None
    assert len(host.asked) == 2


def test_an_answer_that_did_not_change_is_confirmed_and_costs_no_quota(serve: Serve) -> None:
    host = serve({PULLS: Replay([ONE], headers={"ETag": 'W/"1"'})})
    reach = Reach(clock=VirtualClock(NOW))
    first = ask(host, reach)
    assert ask(host, reach) == first
    assert [one.headers.get("if-none-match") for one in host.asked] == [None, 'W/"1"']
    host.answers[PULLS] = [Replay([ONE, {**ONE, "number": 2}], headers={"ETag": 'W/"2"'})]
    assert [one.number for one in ask(host, reach)] == [1, 2]


def test_what_was_read_with_other_credentials_is_not_asked_for_again_with_these(serve: Serve) -> None:
    host = serve({PULLS: Replay([ONE], headers={"ETag": '"1"'})})
    reach = Reach(clock=VirtualClock(NOW))
    for secret in ("a", "b", ""):
        ask(host, reach, secret)
    assert [one.headers.get("if-none-match") for one in host.asked] == [None] * 3


def test_what_is_remembered_is_bounded() -> None:
    memory = Memory(answers=3, together=25, each=10)
    who = ("https://h:443", "")
    for number in range(5):
        memory.keep(f"u{number}", who, Kept("e", {}, b"x" * 9))
    assert [number for number in range(5) if memory.kept(f"u{number}", who)] == [3, 4]
    memory.keep("u4", who, Kept("e", {}, b"x" * 11))
    assert memory.kept("u4", who) is None, "too large, and the one before is no longer true"
    for number in range(5):
        memory.rest((f"h{number}", ""), NOW)
    assert [number for number in range(5) if memory.rests_until((f"h{number}", ""))] == [2, 3, 4]

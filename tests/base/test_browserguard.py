"""What a listener without TLS or credentials answers, and what a web page may have made somebody's browser send."""

from __future__ import annotations

import pytest

from syncline.base.browserguard import BrowserGuard, is_host_name, is_loopback

HERE = BrowserGuard("127.0.0.1")
NAMED = BrowserGuard("127.0.0.1", ("hooks.example.com",))
EVERYWHERE = BrowserGuard("0.0.0.0")
EVERYWHERE_NAMED = BrowserGuard("0.0.0.0", ("hooks.example.com",))
POD = "10.1.2.3"
Headers = dict[str, str]


def status(guard: BrowserGuard, headers: Headers, target: str = "/api", local: str = "127.0.0.1") -> int:
    found = guard.refusal(local, target, headers.items())
    return 200 if found is None else found.status


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:6443", 200),
        ("127.0.0.1:1", 200),  # forwarded from another port
        ("127.8.9.10:6443", 200),
        ("localhost", 200),
        ("LocalHost.:6443", 200),
        ("[::1]", 200),
        ("[::1]:6443", 200),
        ("[0:0:0:0:0:0:0:1]:6443", 200),
        ("[::ffff:127.0.0.1]:6443", 200),
        ("[::FFFF:7f00:1]", 200),
        ("evil.example", 403),
        ("evil.example:6443", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil.localhost", 403),
        ("127.0.0.1.nip.io", 403),
        ("0.0.0.0:6443", 403),
        ("[::]:6443", 403),
        ("169.254.169.254", 403),
        ("[::ffff:10.0.0.1]", 403),
        ("10.1.2.3:6443", 403),
        ("2130706433", 403),
        ("0x7f000001", 403),
        ("127.1", 403),
        ("hooks.example.com", 403),
        ("", 400),
        (".", 400),
        (":6443", 400),
        ("localhost:port", 400),
        ("localhost:99999", 400),
        ("localhost:6443:1", 400),
        ("me@localhost", 400),
        ("localhost@evil.example", 400),
        ("localhost/evil", 400),
        ("localhost evil.example", 400),
        ("localhost,evil.example", 400),
        ("localhost\t", 200),  # white space around a value is none of it
        ("::1", 400),
        ("[::1%lo]", 400),
        ("[127.0.0.1]", 400),
        ("[::1]evil", 400),
        ("lоcalhost", 400),  # a letter that only looks like one of ours
        ("１２７.0.0.1", 400),
    ],
)
def test_on_the_loopback_host_says_so(host: str, expected: int) -> None:
    assert status(HERE, {"Host": host}) == expected


def test_one_host_is_said_and_no_request_goes_without() -> None:
    assert status(HERE, {}) == 400
    twice = [("Host", "127.0.0.1"), ("host", "evil.example")]
    assert (found := HERE.refusal("127.0.0.1", "/", twice)) is not None and found.status == 400
    assert status(HERE, {"Host": "evil.example"}, local="") == 403, "a caller who has left is no exception"


def test_names_are_those_that_an_administrator_gave() -> None:
    assert status(NAMED, {"Host": "Hooks.Example.com."}) == 200
    assert status(NAMED, {"Host": "x.hooks.example.com"}) == 403
    assert status(BrowserGuard("workstation"), {"Host": "workstation:8082"}, local="127.0.1.1") == 200


@pytest.mark.parametrize("host", ["10.1.2.3:8082", "[fd00::1]:8082", "metrics.argocd.svc:8082", "127.0.0.1:8082"])
def test_where_others_reach_it_pods_are_asked_by_their_address_or_any_name(host: str) -> None:
    assert status(EVERYWHERE, {"Host": host}, local=POD) == 200
    assert status(EVERYWHERE, {"Host": host, "Origin": "http://evil.example"}, local=POD) == 403
    assert status(EVERYWHERE_NAMED, {"Host": host}, local=POD) == (403 if "svc" in host else 200)


def test_a_check_of_old_reaches_what_others_reach_without_a_host() -> None:
    assert status(EVERYWHERE, {}, local=POD) == 200


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("127.0.0.1:6443", "http://127.0.0.1:6443", 200),
        ("127.0.0.1:6443", "https://127.0.0.1:6443", 200),  # behind somebody's TLS
        ("localhost", "http://LOCALHOST:80", 200),
        ("127.0.0.1:6443", "http://127.0.0.1:3000", 403),
        ("127.0.0.1:6443", "http://localhost:6443", 403),
        ("127.0.0.1:6443", "http://127.0.0.1", 403),
        ("127.0.0.1:6443", "http://evil.example", 403),
        ("127.0.0.1:6443", "http://evil.example:6443", 403),
        ("127.0.0.1:6443", "http://127.0.0.1:6443@evil.example", 403),
        ("127.0.0.1:6443", "http://127.0.0.1:6443/", 403),
        ("127.0.0.1:6443", "null", 403),
        ("127.0.0.1:6443", "", 403),
        ("127.0.0.1:6443", "file://", 403),
        ("127.0.0.1:6443", "chrome-extension://abc", 403),
        ("127.0.0.1:6443", "http://127.0.0.1:6443 http://evil.example", 403),
    ],
)
def test_pages_of_other_origins_are_not_answered(host: str, origin: str, expected: int) -> None:
    assert status(HERE, {"Host": host, "Origin": origin}) == expected
    assert status(HERE, {"Host": host, "origin": origin, "Upgrade": "websocket"}) == expected


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "same-origin, cross-site", ""])
def test_requests_that_browsers_call_foreign_are_not_answered(site: str) -> None:
    assert status(HERE, {"Host": "localhost", "Sec-Fetch-Site": site}) == 403
    assert status(EVERYWHERE, {"Host": "localhost", "Sec-Fetch-Site": site}, local=POD) == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_requests_of_our_own_pages_and_of_people_are(site: str) -> None:
    assert status(HERE, {"Host": "localhost", "Sec-Fetch-Site": site}) == 200


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/api", 200),
        ("//evil.example/api", 200),  # a path
        ("*", 200),
        ("http://127.0.0.1:6443/api", 200),
        ("http://127.0.0.1/api", 400),
        ("http://evil.example/api", 400),
        ("http://127.0.0.1:6443@evil.example/api", 400),
        ("http://localhost:6443/api", 400),
        ("evil.example:443", 400),
        ("127.0.0.1:6443", 400),
        ("", 400),
    ],
)
def test_it_is_no_proxy(target: str, expected: int) -> None:
    assert status(HERE, {"Host": "127.0.0.1:6443"}, target) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/yaml", 200),
        ("application/apply-patch+yaml", 200),
        ("application/vnd.kubernetes.protobuf", 200),
        ("application/strategic-merge-patch+json", 200),
        (None, 415),
        ("", 415),
        ("text/plain", 415),
        ("text/plain;application/json", 415),
        ("text/plain, application/json", 415),
        ("text/plain; x=,application/json", 415),
        ("application/json, text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/x-www-form-urlencoded;a=application/json", 415),
        ("multipart/form-data; boundary=application/json", 415),
        ("application", 415),
        ("application/", 415),
    ],
)
def test_a_body_says_what_a_program_means_by_it(content: str | None, expected: int) -> None:
    said = {} if content is None else {"Content-Type": content}
    for length in ({"Content-Length": "2"}, {"Transfer-Encoding": "chunked"}):
        assert status(HERE, {"Host": "localhost", **length, **said}) == expected
        assert status(EVERYWHERE, {"Host": "localhost", **length, **said}, local=POD) == expected


@pytest.mark.parametrize(
    ("agent", "content", "expected"),
    [
        ("kubectl/v1.33.4 (linux/amd64) kubernetes/74cdb42", {}, 200),
        ("oc/4.19.0 (darwin/arm64) kubernetes/298429b", {}, 200),
        ("kubectl/v1.33.4 (linux/amd64) kubernetes/74cdb42", {"Content-Type": "text/plain"}, 415),
        ("kubectl/v1.33.4 (linux/amd64) kubernetes/74cdb42", {"Origin": "http://evil.example"}, 403),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", {}, 415),
        ("Mozilla/5.0 (linux/amd64) kubernetes/1 Firefox/140.0", {}, 415),
        ("curl/8.5.0", {}, 415),
        ("", {}, 415),
    ],
)
def test_kubectl_alone_sends_raw_bodies_without_a_type(agent: str, content: Headers, expected: int) -> None:
    assert status(HERE, {"Host": "localhost", "Content-Length": "2", "User-Agent": agent, **content}) == expected


def test_what_has_no_body_needs_no_type() -> None:
    assert status(HERE, {"Host": "localhost", "Content-Length": "0"}) == 200
    assert status(HERE, {"Host": "localhost", "Content-Type": "text/plain"}) == 200


def test_a_refusal_repeats_little_and_nothing_that_a_terminal_obeys() -> None:
    found = HERE.refusal("127.0.0.1", "/", [("Host", "x" * 5000)])
    assert found is not None and len(found.message) < 300
    found = HERE.refusal("127.0.0.1", "/", [("Host", "localhost"), ("Origin", "\x1b[2J<script>é")])
    assert found is not None and found.message.isascii() and found.message.isprintable()


def test_addresses_of_this_machine_and_names_that_can_be_allowed() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1")))
    assert not any(map(is_loopback, ("localhost", "0.0.0.0", "::", "10.0.0.1", "", "::ffff:10.0.0.1")))
    assert is_host_name("hooks.example.com") and is_host_name("my_service")
    assert not any(map(is_host_name, ("", "*", "*.example.com", "http://x", "x:80", "a..b", "-x", "x/y")))

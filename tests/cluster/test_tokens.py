from __future__ import annotations

from datetime import timedelta

import jwt
import pytest

from syncline.base.clock import EPOCH
from syncline.base.entropy import Entropy
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.tokens import ISSUER, BoundObject, ServiceAccountTokens

KEYS = create_keys(EPOCH)
UIDS = {
    ("/serviceaccounts", "demo", "robot"): "sa-1",
    ("/pods", "demo", "web-1"): "pod-1",
    ("/nodes", "", "n1"): "node-1",
}


def issuer(uids: dict[tuple[str, str, str], str] | None = None) -> ServiceAccountTokens:
    known = UIDS if uids is None else uids
    return ServiceAccountTokens(KEYS.service_accounts, lambda *key: known.get(key, ""), Entropy(1))


def issue(tokens: ServiceAccountTokens, *bound: BoundObject, audiences: tuple[str, ...] = ()) -> str:
    issued = tokens.issue("demo", "robot", "sa-1", now=EPOCH, lifetime_s=600, audiences=audiences, bound=bound)
    assert issued.expires_at == EPOCH + timedelta(seconds=600)
    return issued.token.reveal()


def test_a_token_names_its_service_account_with_groups_and_uid() -> None:
    tokens = issuer()
    found = tokens.verify(issue(tokens), now=EPOCH)
    assert found is not None
    user, audiences = found
    assert (user.name, user.uid, audiences) == ("system:serviceaccount:demo:robot", "sa-1", [ISSUER])
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:demo", "system:authenticated")


def test_a_bound_token_tells_its_pod_and_node() -> None:
    tokens = issuer()
    token = issue(tokens, BoundObject("Pod", "web-1", "pod-1"), BoundObject("Node", "n1", "node-1"))
    found = tokens.verify(token, now=EPOCH)
    assert found is not None
    assert found[0].extra["authentication.kubernetes.io/pod-name"] == ("web-1",)
    assert found[0].extra["authentication.kubernetes.io/node-uid"] == ("node-1",)
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["kubernetes.io"] == {
        "namespace": "demo",
        "node": {"name": "n1", "uid": "node-1"},
        "pod": {"name": "web-1", "uid": "pod-1"},
        "serviceaccount": {"name": "robot", "uid": "sa-1"},
    }


@pytest.mark.parametrize(("seconds", "valid"), [(-1, False), (0, True), (599, True), (600, False)])
def test_a_token_counts_within_its_time_only(seconds: int, valid: bool) -> None:
    tokens = issuer()
    token = issue(tokens)
    assert tokens.verify(token, now=EPOCH) is not None, "and the remembered signature changes nothing about it"
    assert (tokens.verify(token, now=EPOCH + timedelta(seconds=seconds)) is not None) is valid


@pytest.mark.parametrize("gone", [("/serviceaccounts", "demo", "robot"), ("/pods", "demo", "web-1")])
@pytest.mark.parametrize("successor", ["", "another-uid"])
def test_a_token_dies_with_its_service_account_and_with_its_pod(gone: tuple[str, str, str], successor: str) -> None:
    uids = dict(UIDS)
    tokens = issuer(uids)
    token = issue(tokens, BoundObject("Pod", "web-1", "pod-1"))
    assert tokens.verify(token, now=EPOCH) is not None
    uids[gone] = successor
    assert tokens.verify(token, now=EPOCH) is None


def test_a_token_for_another_audience_does_not_open_the_api() -> None:
    tokens = issuer()
    token = issue(tokens, audiences=("vault", "db"))
    assert tokens.verify(token, now=EPOCH) is None
    found = tokens.verify(token, now=EPOCH, audiences=("db", "web"))
    assert found is not None and found[1] == ["db"]


def test_foreign_and_broken_tokens_count_for_nothing() -> None:
    other = create_keys(EPOCH)
    foreign = ServiceAccountTokens(other.service_accounts, lambda *key: UIDS.get(key, ""), Entropy(1))
    tokens = issuer()
    token = issue(tokens)
    unsigned = jwt.encode(jwt.decode(token, options={"verify_signature": False}), "", "none")
    for bad in (issue(foreign), "nonsense", "a.b.c", token[:-4] + "AAAA", unsigned, ""):
        assert tokens.verify(bad, now=EPOCH) is None


def test_the_published_key_verifies_tokens() -> None:
    tokens = issuer()
    token = issue(tokens)
    key = jwt.PyJWK(tokens.jwks()["keys"][0])
    assert jwt.get_unverified_header(token)["kid"] == key.key_id
    options: jwt.types.Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    assert jwt.decode(token, key, ["ES256"], options, audience=ISSUER)["sub"] == "system:serviceaccount:demo:robot"

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from syncline.base.clock import EPOCH
from syncline.base.entropy import Entropy
from syncline.cluster.access.authn import Authenticator, is_public_path
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.pki import LEAF_LIFETIME, create_keys
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.access.users import ADMIN, ANONYMOUS, UserInfo
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request
from syncline.kube.errors import ApiError, Forbidden, Unauthorized

KEYS = create_keys(EPOCH)
TOKENS = ServiceAccountTokens(KEYS.service_accounts, lambda *_: "sa-1", Entropy(1))
PODS = "/api/v1/pods"


def authenticator(*, without: UserInfo | None = None) -> Authenticator:
    return Authenticator(
        authorize=Authorizer(Store()).decide,
        tokens=TOKENS,
        fixed_tokens={"root": ADMIN, "plain": UserInfo("jane", ("devs",))},
        without_credentials=without,
    )


def who(
    path: str = PODS, certificate: bytes | None = None, *, without: UserInfo | None = None, **headers: str
) -> UserInfo:
    lower = {name.replace("_", "-"): tuple(value.split("|")) for name, value in headers.items()}
    return authenticator(without=without).authenticate(lower, certificate, EPOCH, Request("GET", path))


def admin_certificate() -> bytes:
    loaded = x509.load_pem_x509_certificate(KEYS.admin.certificate_pem.encode())
    return loaded.public_bytes(serialization.Encoding.DER)


def test_a_client_certificate_tells_user_and_groups() -> None:
    user = who(certificate=admin_certificate())
    assert (user.name, user.groups) == (ADMIN.name, ADMIN.groups)


def test_a_certificate_that_ended_while_its_connection_lived_is_refused() -> None:
    with pytest.raises(Unauthorized):
        late = EPOCH + LEAF_LIFETIME + timedelta(seconds=1)
        authenticator().authenticate({}, admin_certificate(), late, Request("GET", PODS))


def test_a_known_token_tells_its_user_who_is_authenticated() -> None:
    assert who(authorization="Bearer plain") == UserInfo("jane", ("devs", "system:authenticated"))


def test_a_service_account_token_tells_its_service_account() -> None:
    token = TOKENS.issue("demo", "robot", "sa-1", now=EPOCH, lifetime_s=600).token.reveal()
    assert who(authorization=f"Bearer {token}").name == "system:serviceaccount:demo:robot"


@pytest.mark.parametrize("without", [None, ANONYMOUS, ADMIN])
@pytest.mark.parametrize("path", [PODS, "/version"])
def test_a_bad_token_is_refused_everywhere_in_one_word(path: str, without: UserInfo | None) -> None:
    with pytest.raises(Unauthorized) as caught:
        who(path, without=without, authorization="Bearer nonsense")
    assert caught.value.message == "Unauthorized"


def test_without_credentials_only_health_and_version_are_answered() -> None:
    assert who("/version") == ANONYMOUS and who("/livez/ping") == ANONYMOUS
    with pytest.raises(Unauthorized):
        who(PODS)
    with pytest.raises(Unauthorized):
        who(PODS, authorization="Basic cm9vdDpyb290")
    assert not is_public_path("/versions") and not is_public_path("/")


@pytest.mark.parametrize("user", [ANONYMOUS, ADMIN])
def test_callers_without_credentials_can_be_somebody(user: UserInfo) -> None:
    assert who(PODS, without=user) == user
    assert who(PODS, without=user, authorization="Bearer plain").name == "jane"


def test_the_administrator_acts_as_anyone() -> None:
    user = who(
        authorization="Bearer root",
        impersonate_user="jane",
        impersonate_group="devs|ops",
        impersonate_uid="u1",
        impersonate_extra_scopes="a|b",
    )
    assert user == UserInfo("jane", ("devs", "ops", "system:authenticated"), "u1", {"scopes": ("a", "b")})


def test_an_impersonated_service_account_has_its_groups_by_nature() -> None:
    user = who(authorization="Bearer root", impersonate_user="system:serviceaccount:demo:robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:demo", "system:authenticated")


def test_impersonated_anonymous_is_not_authenticated() -> None:
    assert who(authorization="Bearer root", impersonate_user="system:anonymous") == ANONYMOUS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "bob",
            'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" in API group "" '
            "at the cluster scope",
        ),
        (
            "system:serviceaccount:demo:robot",
            'pods is forbidden: User "jane" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" '
            "at the cluster scope",
        ),
        (
            "system:node:n1",
            'pods is forbidden: User "jane" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" '
            "at the cluster scope",
        ),
    ],
)
def test_acting_as_another_needs_the_right_to(name: str, message: str) -> None:
    with pytest.raises(Forbidden) as caught:
        who(authorization="Bearer plain", impersonate_user=name)
    assert caught.value.message == message


def test_attributes_without_a_user_are_an_error_that_names_the_header() -> None:
    with pytest.raises(ApiError, match="without impersonating a user name") as caught:
        who(authorization="Bearer root", impersonate_group="devs")
    assert caught.value.code == 400

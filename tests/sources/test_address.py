"""The normal form of an address: what is compared is what is dialled, and what has none is refused with a sentence."""

from __future__ import annotations

import pytest

from syncline.argo.project import permits_source
from syncline.argo.webhooks.match import same_place
from syncline.kube.objects import Obj
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.signatures import policy_for
from syncline.sources.remote.address import DEFAULT_NETWORKS, is_forbidden, parse_address, parse_networks


def project(*repos: str) -> Obj:
    return {"metadata": {"name": "team"}, "spec": {"sourceRepos": list(repos)}}


SAME = [
    ("HTTPS://Git.Example.com:443/Org/app.git/", "https://git.example.com/Org/app.git/"),
    ("https://git.example.com:/org/app", "https://git.example.com/org/app"),
    ("https://git.example.com./org/app", "https://git.example.com/org/app"),
    ("https://git.example.com/org/./x/../app", "https://git.example.com/org/app"),
    ("https://git.example.com/org/x/%2e%2E/app", "https://git.example.com/org/app"),
    ("https://git.example.com/org/x/.%2e/app", "https://git.example.com/org/app"),
    ("https://git.example.com//org///app", "https://git.example.com/org/app"),
    ("https://git.example.com/%6Frg/app", "https://git.example.com/org/app"),
    ("https://\uff47it.example.com/org/app", "https://git.example.com/org/app"),
    ("https://git\u3002example.com/org/app", "https://git.example.com/org/app"),
    ("https://b\u00fccher.example/x", "https://xn--bcher-kva.example/x"),
    ("https://me@git.example.com/org/app", "https://me@git.example.com/org/app"),
    ("http://[::0:1]:80/x", "http://[::1]/x"),
    ("http://[::ffff:10.0.0.1]/x", "http://10.0.0.1/x"),
    ("ssh://git@host:22/org/app", "ssh://git@host/org/app"),
    ("git@HOST:org/../app.git", "git@host:app.git"),
    ("oci://Registry.example.com:443/charts", "oci://registry.example.com/charts"),
    ("file://localhost/srv/../git", "file:///git"),
    ("/srv//x/../git", "/srv/git"),
]


@pytest.mark.parametrize(("given", "dialled"), SAME)
def test_what_is_dialled_is_the_normal_form(given: str, dialled: str) -> None:
    found = parse_address(given)
    assert found.dial == dialled
    assert parse_address(dialled) == found, "the normal form of a normal form is itself"


ONE = "ssh://git@host/org/app"


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("git@host:org/app", ONE),
        ("git@host:/org/app.git", ONE),
        ("git@host:~/org/app", ONE),
        ("ssh://git@HOST:22//org/app/", ONE),
        ("https://u:p@h/Org/App.git/", "https://h/org/app"),
        ("https://h/app/.git", "https://h/app"),
        ("https://h/a%2Fb", "https://h/a/b"),
        ("oci://registry-1.docker.io/org/chart", "oci://docker.io/org/chart"),
        ("https://h/x?token=1", "https://h/x"),
        ("https://h/\u212a", "https://h/%e2%84%aa"),
    ],
)
def test_spellings_of_one_place_are_compared_as_one(address: str, key: str) -> None:
    assert parse_address(address).key == key


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("https://git/../x", "leaves its host"),
        ("https://git/org/%252e%252e/x", "escaped control character, backslash or percent"),
        ("https://git/org/..%2f../x", "dot segment"),
        ("https://git/org/..;/x", "dot segment with parameters"),
        ("https://git/org\\..\\x", "backslash"),
        ("https://git/org%5c..%5cx", "backslash"),
        ("https://git/x%00y", "control character"),
        ("https://git/x%0d%0ay", "control character"),
        ("https://git/x\x7fy", "control character"),
        ("https://git/x\u2028y", "control character"),
        ("https://git/x y", "not an address"),
        ("https://git/%zz", "begins no escape"),
        ("https://git/x#y", "fragment"),
        ("https://git@evil@git/x", "user or password"),
        ("https://git%40/@evil/x", "valid host"),
        ("ssh://git%40evil@git/x", "user or password"),
        ("ssh://git:pw@git/x", "has a password"),
        ("ssh://git@git/x%2fy", "escaped slash"),
        ("https://git:0/x", "port"),
        ("https://git:65536/x", "port"),
        ("https://git:44\u0663/x", "port"),
        ("https://a..b/x", "valid host"),
        ("https:///x", "valid host"),
        ("https://git.example.com\uff0fx/y", "valid host"),
        ("http://0x7f000001/x", "four decimal"),
        ("http://2130706433/x", "four decimal"),
        ("http://0177.0.0.1/x", "four decimal"),
        ("http://127.1/x", "four decimal"),
        ("http://1.2.3.0x4/x", "four decimal"),
        ("http://[fe80::1%25eth0]/x", "zone"),
        ("http://[::1/x", "valid host"),
        ("ssh://-oProxyCommand=x/y", "valid host"),
        ("git@-oProxyCommand=x:y", "valid host"),
        ("-ux@h:y", "not an address"),
        ("git@h:-x", "valid user or path"),
        ("git@h:../x", "leaves its host"),
        ("ext::sh -c x", "not an address"),
        ("ext::sh", "transport helper"),
        ("gopher://h/x", "uses gopher"),
        ("file://elsewhere/x", "file://"),
    ],
)
def test_what_has_no_normal_form_is_refused_with_a_sentence(address: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        parse_address(address)
    assert caught.value.problem is Problem.REFUSED
    assert not permits_source(project("*"), address), "whatever the project lists"


@pytest.mark.parametrize(
    ("listed", "address"),
    [
        ("https://git/org/*", "https://git/org/../secret"),
        ("https://git/org/*", "https://git/org/%2e%2e/secret"),
        ("https://git/org/**", "https://git/org/x/../../secret"),
        ("https://git/org/*", "https://git/org/a%2fb"),
        ("https://git/*/app", "https://git/evil?x/app"),
        ("https://git.*/org/*", "https://git.x@evil/org/app"),
        ("https://git/org/*", "https://git:8443/org/app"),
        ("https://git/org/*", "http://git/org/app"),
        ("git@git:org/*", "git@git:org/../secret"),
        ("git@git:org/*", "root@git:org/app"),
        ("oci://reg/team/*", "oci://reg/team/../secret"),
        ("/srv/git/team/*", "/srv/git/team/../secret"),
        ("file:///srv/team/*", "file://localhost/srv/team/%2e%2e/secret"),
    ],
)
def test_another_spelling_permits_nothing_that_is_not_listed(listed: str, address: str) -> None:
    assert not permits_source(project(listed), address)


@pytest.mark.parametrize(
    ("denied", "address"),
    [
        ("https://git/secret", "https://git/secret/"),
        ("https://git/secret", "https://git/./secret"),
        ("https://git/secret", "https://git:443//Secret.git"),
        ("https://git/secret", "https://me@git/secret"),
        ("https://git/secret", "https://git/secret?x"),
        ("https://git/secret", "https://git/secret/.git"),
        ("https://git/secret/*", "https://git/secret%2fapp"),
        ("https://git:443/secret/*", "https://git/secret/app"),
        ("git@git:secret/*", "ssh://git@git/secret/app"),
        ("git@git:secret/*", "ssh://other@git:22/secret/app"),
        ("oci://docker.io/secret/*", "oci://index.docker.io/secret/app"),
        ("oci://reg/secret/*", "reg/secret/app"),
        ("file:///srv/secret", "/srv/secret"),
    ],
)
def test_another_spelling_is_denied_as_well(denied: str, address: str) -> None:
    assert not permits_source(project("*", f"!{denied}"), address)


@pytest.mark.parametrize(
    ("listed", "address"),
    [
        ("https://git/org/*", "https://git/Org/App.git"),
        ("https://git/org/*", "https://git/org/"),
        ("https://git/org/app.git", "HTTPS://git:443/org/app"),
        ("https://me@git/org/app", "https://me@git/org/app"),
        ("https://*@git/org/*", "https://me@git/org/app"),
        ("git@git:org/*", "ssh://git@git/org/app"),
        ("ssh://git@git:7999/org/*", "ssh://git@git:7999/org/app.git"),
        ("https://git/api/projects/a%2Fb/**", "https://git/api/projects/a%2Fb/packages"),
        ("https://charts/x?token=1", "https://charts/x?token=1"),
        ("https://charts/*", "https://charts/x?token=1"),
        ("registry.example.com:5000/charts", "registry.example.com:5000/charts"),
        ("/srv/git/*", "/srv/git/app"),
        ("*", "./here"),
        ("!https://git/bad", "https://git/good"),
    ],
)
def test_usual_addresses_are_permitted_as_upstream_does(listed: str, address: str) -> None:
    assert permits_source(project(listed), address)


def test_another_spelling_does_not_leave_the_policy_of_signatures() -> None:
    policy = {"repos": [{"url": "https://git/org/app"}], "gpg": {"mode": "head", "keys": ["K"]}}
    asks = {"spec": {"sourceIntegrity": {"git": {"policies": [policy]}}}}
    for spelling in ("https://git/org/app", "https://GIT:443/Org/app.git/", "https://me@git/org/./app"):
        assert policy_for(asks, spelling) is not None, spelling
    assert policy_for(asks, "https://git/org/other") is None


def test_a_push_concerns_every_spelling_of_its_repository() -> None:
    for spelling in ("https://git/org/./app", "https://git/org//app.git", "ssh://git@ssh.git:22/~/org/app"):
        assert same_place(spelling) == ("git", "org/app")
    assert same_place("https://git/../x") is None


@pytest.mark.parametrize(
    ("host", "forbidden"),
    [
        ("169.254.169.254", True),
        ("169.254.0.1", True),
        ("fe80::1", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:a9fe:a9fe::1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("224.0.0.1", True),
        ("metadata.google.internal", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("git.internal", False),
    ],
)
def test_places_that_tell_machines_their_credentials_are_not_reached(host: str, forbidden: bool) -> None:
    assert is_forbidden(host, DEFAULT_NETWORKS) is forbidden
    assert not is_forbidden(host, ()), "an administrator may allow all"


def test_an_administrator_may_forbid_other_networks() -> None:
    assert is_forbidden("127.0.0.2", parse_networks(["127.0.0.0/8", " ::1 "]))

"""Repositories, credentials, clusters, certificates, keys and ApplicationSets through the port of the server."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.web.test_server import Installation
from tests.web.test_server import installed as installed

from syncline.base.clock import SystemClock
from syncline.cluster.access.pki import new_authority
from syncline.kube.client import Request
from syncline.web.wire.api import read, writer

SECRETS = "/api/v1/namespaces/argocd/secrets"
REPOSITORY = "/repository.RepositoryService/"
CREDENTIALS = "/repocreds.RepoCredsService/"


def refused(installed: Installation, path: str, request: dict[str, Any], token: str) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as found:
        installed.call(path, request, token=token)
    return found.value.code(), found.value.details()


@pytest.fixture
def repository(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    return f"file://{tmp_path}"


def test_a_repository_is_declared_changed_and_taken_back(installed: Installation, repository: str) -> None:
    token = installed.login()
    wanted = {"repo": repository, "type": "git"}
    for _ in range(2):  # what is declared already is declared again without a word
        said = installed.call(REPOSITORY + "CreateRepository", {"repo": wanted}, token=token)
        assert (said["repo"], said["type"]) == (repository, "git")
    other = wanted | {"username": "me", "password": "hidden-canary"}
    code, text = refused(installed, REPOSITORY + "CreateRepository", {"repo": other}, token)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == (
        'existing repository spec is different; use upsert flag to force update; difference in keys "Password,Username"'
    )
    installed.call(REPOSITORY + "CreateRepository", {"repo": other, "upsert": True}, token=token)
    (listed,) = installed.call(REPOSITORY + "ListRepositories", token=token)["items"]
    assert (listed["username"], listed["connectionState"]["status"]) == ("me", "Successful")
    assert "hidden-canary" not in json.dumps(listed)
    secrets = installed.client.send(Request("GET", SECRETS)).or_raise()["items"]
    (secret,) = [one for one in secrets if one["metadata"]["name"].startswith("repo-")]
    assert secret["metadata"]["annotations"]["managed-by"] == "argocd.argoproj.io"
    assert secret["metadata"]["labels"] == {"argocd.argoproj.io/secret-type": "repository"}
    installed.call(REPOSITORY + "DeleteRepository", {"repo": repository}, token=token)
    assert not installed.call(REPOSITORY + "ListRepositories", token=token)["items"]
    denied = refused(installed, REPOSITORY + "Get", {"repo": repository}, token)
    assert denied == (grpc.StatusCode.PERMISSION_DENIED, "permission denied")


def test_credentials_below_a_url_are_inherited_and_never_shown(installed: Installation, repository: str) -> None:
    token = installed.login()
    shared = {"url": repository[:-3], "username": "team", "password": "hidden-canary"}
    installed.call(CREDENTIALS + "CreateRepositoryCredentials", {"creds": shared}, token=token)
    installed.call(REPOSITORY + "CreateRepository", {"repo": {"repo": repository, "type": "git"}}, token=token)
    found = installed.call(REPOSITORY + "Get", {"repo": repository}, token=token)
    assert (found["inheritedCreds"], found["username"]) == (True, "team")
    listed = installed.call(CREDENTIALS + "ListRepositoryCredentials", token=token)
    assert listed["items"] == [{"url": shared["url"], "username": "team"}]
    assert "hidden-canary" not in json.dumps([found, listed])
    installed.call(REPOSITORY + "DeleteRepository", {"repo": repository}, token=token)
    installed.call(CREDENTIALS + "DeleteRepositoryCredentials", {"url": shared["url"]}, token=token)
    code, text = refused(installed, CREDENTIALS + "DeleteRepositoryCredentials", {"url": shared["url"]}, token)
    assert (code, text) == (
        grpc.StatusCode.NOT_FOUND,
        f"repository credentials '{shared['url']}' not found",
    )


def test_what_is_asked_reaches_no_forbidden_network(installed: Installation, repository: str) -> None:
    token = installed.login()
    there = "http://169.254.169.254/latest"
    code, text = refused(installed, REPOSITORY + "ValidateAccess", {"repo": there}, token)
    assert code is grpc.StatusCode.UNKNOWN
    assert text.startswith("error testing repository connectivity: ")
    assert "lies in a network that repositories may not name" in text
    for field in ("proxy", "githubAppEnterpriseBaseUrl"):
        wanted = {"repo": "https://git.example.invalid/a", "project": "default", field: there}
        code, text = refused(installed, REPOSITORY + "CreateRepository", {"repo": wanted}, token)
        assert (code, field in text) == (grpc.StatusCode.INVALID_ARGUMENT, True)


def test_branches_and_tags_are_listed_for_who_may_get_the_repository(installed: Installation, tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    asked = {"repo": f"file://{tmp_path}"}
    found = installed.call(REPOSITORY + "ListRefs", asked, token=installed.login())
    assert (found["branches"], found["tags"]) == (["main"], ["v1"])
    there = refused(installed, REPOSITORY + "ListRefs", {"repo": "http://169.254.169.254/x"}, installed.login())
    assert "lies in a network that repositories may not name" in there[1]


def test_a_secret_of_people_only_loses_its_label(installed: Installation, repository: str) -> None:
    token = installed.login()
    labels = {"argocd.argoproj.io/secret-type": "repository", "team": "a"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ours", "labels": labels}}
    installed.write("POST", SECRETS, body | {"stringData": {"url": repository}})
    name = installed.call(REPOSITORY + "ValidateAccess", {"repo": repository}, token=token)
    assert name == {}
    while not installed.call(REPOSITORY + "List", token=token).get("items"):
        pass
    installed.call(REPOSITORY + "Delete", {"repo": repository}, token=token)
    kept = installed.client.send(Request("GET", f"{SECRETS}/ours")).or_raise()
    assert kept["metadata"]["labels"] == {"team": "a"}


CLUSTER = "/cluster.ClusterService/"


def test_the_cluster_of_the_applications_is_declared_changed_and_taken_back(installed: Installation) -> None:
    token, server = installed.login(), "https://kubernetes.default.svc"
    (known,) = installed.call(CLUSTER + "List", {"server": server}, token=token)["items"]
    assert (known["name"], known["connectionState"]["status"]) == ("in-cluster", "Successful")
    given = {"server": server, "name": "ours", "config": {"bearerToken": "hidden-canary"}}
    made = installed.call(CLUSTER + "Create", {"cluster": given}, token=token)
    assert (made["name"], "hidden-canary" in json.dumps(made)) == ("ours", False)
    code, text = refused(installed, CLUSTER + "Create", {"cluster": given | {"name": "other"}}, token)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == 'existing cluster spec is different; use upsert flag to force update; difference in keys "Name"'
    change = {"id": {"type": "name", "value": "ours"}, "updatedFields": ["labels"], "cluster": {"labels": {"a": "b"}}}
    assert installed.call(CLUSTER + "Update", change, token=token)["labels"] == {"a": "b"}
    again = installed.call(CLUSTER + "InvalidateCache", {"id": {"value": server}}, token=token)
    assert again["refreshRequestedAt"]
    installed.call(CLUSTER + "Delete", {"name": "ours"}, token=token)
    assert refused(installed, CLUSTER + "Get", {"name": "ours"}, token)[1] == "permission denied"
    assert installed.call(CLUSTER + "Get", {"server": server}, token=token)["name"] == "in-cluster"


def test_a_cluster_that_does_not_answer_or_must_not_be_asked_is_not_declared(installed: Installation) -> None:
    token = installed.login()
    for server, code, text in (
        ("https://127.0.0.1:1", grpc.StatusCode.UNKNOWN, "error getting server version: "),
        ("http://169.254.169.254", grpc.StatusCode.INVALID_ARGUMENT, "cluster http://169.254.169.254 lies in"),
    ):
        given = {"server": server, "name": "far", "config": {"bearerToken": "x"}}
        found = refused(installed, CLUSTER + "Create", {"cluster": given}, token)
        assert (found[0], found[1].startswith(text)) == (code, True), found


CERTIFICATE = "/certificate.CertificateService/"
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIIhtxNNaQ0tQHfrGCRFKI6zYPLRpL2pNBQmCRwxuWnLb"


def test_known_hosts_are_stored_once_and_found_by_patterns(installed: Installation) -> None:
    token = installed.login()
    one = {"serverName": "[git.example.com]:2222", "certType": "ssh", "certSubType": "ssh-ed25519"}
    one["certData"] = base64.b64encode(KEY.encode()).decode()
    (made,) = installed.call(CERTIFICATE + "CreateCertificate", {"certificates": {"items": [one]}}, token=token)[
        "items"
    ]
    print_of = base64.b64encode(hashlib.sha256(base64.b64decode(KEY)).digest()).decode().rstrip("=")
    assert made["certInfo"] == print_of
    assert not installed.call(CERTIFICATE + "CreateCertificate", {"certificates": {"items": [one]}}, token=token)[
        "items"
    ]
    (listed,) = installed.call(CERTIFICATE + "ListCertificates", {"hostNamePattern": "[git.*"}, token=token)["items"]
    assert (listed["certInfo"], listed.get("certData")) == (f"SHA256:{print_of}", None)
    other = KEY[:-4] + "AAAA"
    changed = {"certificates": {"items": [one | {"certData": base64.b64encode(other.encode()).decode()}]}}
    _, text = refused(installed, CERTIFICATE + "CreateCertificate", changed, token)
    assert text.endswith("(subtype: 'ssh-ed25519') already exists, and upsert was not specified")
    installed.call(CERTIFICATE + "CreateCertificate", changed | {"upsert": True}, token=token)
    stored = installed.client.send(Request("GET", "/api/v1/namespaces/argocd/configmaps/argocd-ssh-known-hosts-cm"))
    assert stored.or_raise()["data"] == {"ssh_known_hosts": f"[git.example.com]:2222 ssh-ed25519 {other}\n"}
    assert len(installed.call(CERTIFICATE + "DeleteCertificate", {"certType": "ssh"}, token=token)["items"]) == 1
    assert not installed.call(CERTIFICATE + "ListCertificates", token=token)["items"]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"certType": "ssh", "certSubType": "ssh-rsa"}, "is no public key of type 'ssh-rsa'"),
        ({"certType": "https", "serverName": "a b"}, "invalid hostname in request: a b"),
        ({"certType": "https"}, "no valid PEM data received"),
        ({"certType": "x"}, "unknown certificate type: x"),
        ({"certType": "ssh", "certSubType": "ssh-ed25519", "serverName": "a\nb"}, "invalid hostname in request: a\nb"),
    ],
)
def test_what_is_no_certificate_is_not_stored(installed: Installation, wrong: dict[str, str], text: str) -> None:
    one = {"serverName": "git.example.com", "certData": base64.b64encode(KEY.encode()).decode()} | wrong
    asked = {"certificates": {"items": [one]}}
    assert refused(installed, CERTIFICATE + "CreateCertificate", asked, installed.login())[1].endswith(text)


def test_certificates_of_servers_are_described(installed: Installation) -> None:
    token, pem = installed.login(), new_authority(SystemClock().now()).certificate_pem
    one = {"serverName": "git.example.com", "certType": "https", "certData": base64.b64encode(pem.encode()).decode()}
    installed.call(CERTIFICATE + "CreateCertificate", {"certificates": {"items": [one]}}, token=token)
    (listed,) = installed.call(CERTIFICATE + "ListCertificates", {"certType": "https"}, token=token)["items"]
    assert (listed["certSubType"], "CN=" in listed["certInfo"]) == ("ecdsa", True)
    installed.call(CERTIFICATE + "DeleteCertificate", {"hostNamePattern": "git.*"}, token=token)
    assert not installed.call(CERTIFICATE + "ListCertificates", token=token)["items"]


SET = "/applicationset.ApplicationSetService/"


def fleet(**metadata: Any) -> dict[str, Any]:
    elements = [{"name": "one"}, {"name": "two"}]
    source = {"repoURL": "https://git.example.invalid/demo.git", "path": "app"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    template = {
        "metadata": {"name": "{{name}}"},
        "spec": {"project": "default", "source": source, "destination": destination},
    }
    spec = {"generators": [{"list": {"elements": elements}}], "template": template}
    return {"metadata": {"name": "fleet", **metadata}, "spec": spec}


def test_a_set_is_generated_created_and_deleted(installed: Installation) -> None:
    token = installed.login()
    made = installed.call(SET + "Generate", {"applicationSet": fleet()}, token=token)["applications"]
    assert [app["metadata"]["name"] for app in made] == ["one", "two"]
    shown = installed.call(SET + "Create", {"applicationset": fleet(), "dryRun": True}, token=token)
    assert [one["name"] for one in shown["status"]["resources"]] == ["one", "two"]
    assert refused(installed, SET + "Get", {"name": "fleet"}, token)[0] is grpc.StatusCode.NOT_FOUND
    installed.call(SET + "Create", {"applicationset": fleet()}, token=token)
    changed = fleet(labels={"team": "a"})
    code, text = refused(installed, SET + "Create", {"applicationset": changed}, token)
    assert text == "existing ApplicationSet spec is different, use upsert flag to force update"
    stored = installed.call(SET + "Create", {"applicationset": changed, "upsert": True}, token=token)
    assert (code, stored["metadata"]["labels"]) == (grpc.StatusCode.INVALID_ARGUMENT, {"team": "a"})
    assert len(installed.call(SET + "List", {"selector": "team=a"}, token=token)["items"]) == 1
    assert not installed.call(SET + "List", {"projects": ["other"]}, token=token)["items"]
    assert "items" in installed.call(SET + "ListResourceEvents", {"name": "fleet"}, token=token)
    raw = writer().write("applicationset.ApplicationSetWatchQuery", {"name": "fleet"})
    stream = installed.channel.unary_stream(SET + "Watch")(raw, metadata=(("token", token),), timeout=60)
    events = (read("argoproj.v1alpha1.ApplicationSetWatchEvent", one) for one in stream)
    assert next(events)["type"] == "ADDED"
    installed.call(SET + "Delete", {"name": "fleet"}, token=token)
    assert any(one["type"] == "DELETED" for one in events)
    stream.cancel()


def test_a_set_that_must_not_be_stored_is_refused(installed: Installation) -> None:
    token, wanted = installed.login(), fleet()
    wanted["spec"]["template"]["spec"]["project"] = "none"
    found = refused(installed, SET + "Create", {"applicationset": wanted}, token)
    assert found[1].endswith("ApplicationSet references project none which does not exist")
    wanted["spec"]["template"]["spec"]["project"] = "{{name}}"
    assert "templated `project` fields" in refused(installed, SET + "Generate", {"applicationSet": wanted}, token)[1]
    elsewhere = {"applicationset": fleet(namespace="kube-system")}
    assert refused(installed, SET + "Create", elsewhere, token)[1] == "namespace 'kube-system' is not permitted"


GPG = "/gpgkey.GPGKeyService/"


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg makes the keys of this test")
@pytest.mark.parametrize(("kind", "named"), [("rsa2048", "rsa2048"), ("ed25519", "ed25519")])
def test_keys_are_read_as_gpg_reads_them(installed: Installation, tmp_path: Path, kind: str, named: str) -> None:
    home = ["gpg", "--homedir", str(tmp_path), "--batch", "--quiet", "--no-autostart"]
    made = ["--passphrase", "", "--pinentry-mode", "loopback", "--quick-generate-key", "Team <team@example.com>", kind]
    subprocess.run(["gpg", "--homedir", str(tmp_path), "--batch", "--quiet", *made], check=True, capture_output=True)
    listed = subprocess.run([*home, "--with-colons", "--list-keys"], check=True, capture_output=True, text=True).stdout
    fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
    armoured = subprocess.run([*home, "--armor", "--export"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["gpgconf", "--homedir", str(tmp_path), "--kill", "all"], check=False)
    token, asked = installed.login(), {"publickey": {"keyData": armoured}}
    (key,) = installed.call(GPG + "Create", asked, token=token)["created"]["items"]
    assert (key["fingerprint"], key["keyID"]) == (fingerprint, fingerprint[24:])
    assert (key["owner"], key["subType"], key["keyData"]) == ("Team <team@example.com>", named, armoured)
    assert installed.call(GPG + "Create", asked, token=token)["skipped"] == [key["keyID"]]
    assert not installed.call(GPG + "List", token=token)["items"][0].get("keyData")
    assert installed.call(GPG + "Get", {"keyID": fingerprint}, token=token)["keyData"] == armoured
    installed.call(GPG + "Delete", {"keyID": key["keyID"]}, token=token)
    assert refused(installed, GPG + "Get", {"keyID": fingerprint}, token)[1] == f"no such key: {key['keyID']}"


def test_what_is_no_key_is_refused(installed: Installation) -> None:
    token = installed.login()
    for text in ("x", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----"):
        found = refused(installed, GPG + "Create", {"publickey": {"keyData": text}}, token)
        assert found[1].startswith("error validating PGP keys from input: ")
    assert refused(installed, GPG + "Get", {"keyID": "../x"}, token)[1] == "'../x' is not a valid GnuPG key ID"


def test_notifications_are_named(installed: Installation) -> None:
    data = {"trigger.on-sync": "x", "template.sync": "x", "service.webhook.hook": "url: hidden-canary"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm"}, "data": data}
    installed.write("POST", "/api/v1/namespaces/argocd/configmaps", body)
    token, service = installed.login(), "/notification.NotificationService/"
    while not installed.call(service + "ListTriggers", token=token).get("items"):
        pass
    for method, name in (("ListTriggers", "on-sync"), ("ListTemplates", "sync"), ("ListServices", "hook")):
        assert installed.call(service + method, token=token)["items"] == [{"name": name}]

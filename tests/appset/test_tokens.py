"""Which Secrets and ConfigMaps a question may use."""

from __future__ import annotations

import base64
import json

import pytest

from syncline.appset.asking import Unreadable
from syncline.appset.questions import DirectoriesQuestion, PluginQuestion, RepositoriesQuestion
from syncline.appset.tokens import read_references, references_of
from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj
from syncline.sources.providers.model import SecretReference

TYPE = "argocd.argoproj.io/secret-type"
SECRETS = GroupKind("", "Secret")


def secret(name: str, labels: dict[str, str] | None = None, namespace: str = "team", **data: str) -> Obj:
    values = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": values}


def read(obj: Obj | None, reference: SecretReference, *, strict: bool = False, unread: str = "") -> str | None:
    cache = Cache(Mapper())
    if obj is not None:
        cache.put(GroupKind("", obj["kind"]), obj)
    if unread:
        cache.mark_unread(SECRETS, unread)
    found = read_references(cache, [reference], strict=strict).get(reference)
    return None if found is None else found.reveal()


TOKEN = SecretReference("team", "t", "token")
PLUGIN = SecretReference("argocd", "p", "token", purpose="plugin")
APP = SecretReference("argocd", "app", "githubAppID", purpose="github-app")


def test_b58_strict_token_references_need_the_label() -> None:
    assert read(secret("t", token="x"), TOKEN) == "x"
    assert read(secret("t", {TYPE: "scm-creds"}, token="x"), TOKEN, strict=True) == "x"
    with pytest.raises(Unreadable, match="secret team/t is not a valid SCM creds secret: secret must have label"):
        read(secret("t", token="x"), TOKEN, strict=True)


@pytest.mark.parametrize(
    ("obj", "reference", "text"),
    [
        (None, TOKEN, 'error fetching secret team/t: Secret "t" not found'),
        (secret("t", other="x"), TOKEN, 'key "token" in secret team/t not found'),
        (secret("p", namespace="argocd", token="x"), PLUGIN, "must have the label app.kubernetes.io/part-of: argocd"),
        (secret("app", namespace="argocd", githubAppID="1"), APP, "must have the label argocd.argoproj.io/secret-type"),
        ({**secret("t"), "data": {"token": "%"}}, TOKEN, "is not text in base64"),
    ],
)
def test_what_cannot_be_used_is_named(obj: Obj | None, reference: SecretReference, text: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(obj, reference)
    assert text in str(refused.value)


def test_a_secret_that_may_not_be_read_is_not_an_absent_one() -> None:
    with pytest.raises(Unreadable) as refused:
        read(None, TOKEN, unread="secrets is forbidden")
    assert "secrets is forbidden" in str(refused.value) and "not found" not in str(refused.value)


def test_the_secret_of_argo_cd_itself_and_labelled_ones_serve_plugins() -> None:
    own = SecretReference("argocd", "argocd-secret", "k", purpose="plugin")
    assert read(secret("argocd-secret", namespace="argocd", k="v"), own) == "v"
    labelled = secret("p", {"app.kubernetes.io/part-of": "argocd"}, "argocd", token="w")
    assert read(labelled, PLUGIN) == "w"


def test_config_maps_give_certificates_and_optional_keys_may_be_missing() -> None:
    reference = SecretReference("team", "ca", "cert", kind="ConfigMap")
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ca", "namespace": "team"},
        "data": {"cert": "PEM"},
    }
    assert read(config, reference) == "PEM"
    assert read(secret("t"), SecretReference("team", "t", "url", optional=True)) is None


def test_a_set_names_secrets_of_its_own_namespace_alone() -> None:
    spec = json.dumps({"github": {"organization": "o", "tokenRef": {"secretName": "argocd/x", "key": "k"}}})
    assert references_of(RepositoriesQuestion(spec, "team"), "argocd") == (SecretReference("team", "argocd/x", "k"),)
    assert references_of(DirectoriesQuestion("u", "", "p"), "argocd") == ()
    assert references_of(PluginQuestion("u", "{}", PLUGIN), "argocd") == (PLUGIN,)

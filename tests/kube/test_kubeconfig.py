from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncline.base.secret import Secret
from syncline.kube.client import Request
from syncline.kube.transport.http import request_headers
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, in_cluster, load_kubeconfig

V1 = "client.authentication.k8s.io/v1"
NEVER: dict[str, Any] = {"command": "a", "apiVersion": V1, "interactiveMode": "Never"}


def config(name: str = "one", user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/", **cluster}}],
        "users": [{"name": name, "user": user or {"token": f"t-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def written(folder: Path, value: dict[str, Any], name: str = "config") -> Path:
    file = folder / name
    file.write_bytes(msgspec.json.encode(value))
    return file


def test_the_current_context_gives_server_credentials_and_namespace(tmp_path: Path) -> None:
    value = config()
    value["contexts"][0]["context"]["namespace"] = "argocd"
    access = load_kubeconfig(written(tmp_path, value))
    assert (access.server, access.namespace, access.context) == ("https://one:6443", "argocd", "one")
    assert access.token == Secret("t-one") and "t-one" not in repr(access)


def test_yaml_and_a_named_context_are_read(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        "clusters:\n- {name: c, cluster: {server: 'http://localhost:1'}}\n"
        "contexts:\n- {name: a, context: {cluster: c}}\n- {name: b, context: {cluster: c, namespace: ns}}\n"
    )
    assert load_kubeconfig(file, "b") == ClusterAccess("http://localhost:1", namespace="ns", context="b")
    with pytest.raises(KubeconfigError, match="no current-context is set; choose one with --context"):
        load_kubeconfig(file)


def test_certificates_come_inline_or_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "key.pem").write_text("KEY")
    user = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key": "key.pem"}
    access = load_kubeconfig(written(tmp_path, config(user=user, **{"certificate-authority": "ca.crt"})))
    assert (access.ca_pem, access.certificate_pem, access.key_pem) == ("CA", "CERT", Secret("KEY"))


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    first, second = config("one"), config("two")
    second["clusters"].append({"name": "one", "cluster": {"server": "https://wrong"}})
    files = [written(tmp_path, first, "a"), tmp_path / "missing", written(tmp_path, second, "b")]
    environ = {"KUBECONFIG": ":".join(map(str, files))}
    assert load_kubeconfig(environ=environ).server == "https://one:6443"
    assert load_kubeconfig(context="two", environ=environ).server == "https://two:6443"


def test_the_file_in_the_home_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", config())
    assert load_kubeconfig(environ={"HOME": str(tmp_path)}).context == "one"


def test_inside_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    for name, text in (("token", "T"), ("ca.crt", "CA"), ("namespace", "demo\n")):
        (tmp_path / name).write_text(text)
    access = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, tmp_path)
    assert (access.server, access.ca_pem, access.namespace) == ("https://[fd00::1]:6443", "CA", "demo")
    assert dict(request_headers(access, Request("GET", "/")))["authorization"] == "Bearer T"
    (tmp_path / "token").write_text("T2\n")
    assert dict(request_headers(access, Request("GET", "/")))["authorization"] == "Bearer T2", "tokens are rotated"
    with pytest.raises(KubeconfigError, match="not inside a pod"):
        in_cluster({}, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": {"exec": {"command": "aws"}}}, 'exec.apiVersion: is ""; write one of client.authentication'),
        ({"user": {"exec": {"apiVersion": V1}}}, "exec.command: is missing"),
        ({"user": {"exec": {"command": "a", "apiVersion": V1}}}, 'exec.interactiveMode: is ""; write one of Never'),
        ({"user": {"exec": NEVER | {"env": ["A=b"]}}}, "exec.env: is no list of name and value"),
        ({"user": {"exec": NEVER | {"args": "a b"}}}, "exec.args: is no list of texts"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider gcp is not supported.*use your provider"),
        ({"user": {"username": "u", "password": "p"}}, "user name and password are not supported"),
        ({"user": {"client-certificate-data": "%%"}}, "client-certificate-data is not PEM in base64"),
        ({"user": {"client-key": "none.pem"}}, "none.pem cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_entry_and_the_fix(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(KubeconfigError, match=message) as caught:
        load_kubeconfig(written(tmp_path, config(**change)))
    assert 'user "one"' in str(caught.value)


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match='there is no context "x"; known contexts: one'):
        load_kubeconfig(written(tmp_path, config()), "x")


def test_no_file_at_all_is_told_with_the_places_looked_at(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"there is no kubeconfig at .*none; name one with"):
        load_kubeconfig(tmp_path / "none")
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(KubeconfigError, match="is no YAML or JSON"):
        load_kubeconfig(tmp_path / "bad")


def test_a_proxy_of_another_kind_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="proxy-url: only proxies at http:// are supported") as caught:
        load_kubeconfig(written(tmp_path, config(**{"proxy-url": "socks5://me:hidden@proxy"})))
    assert "hidden" not in str(caught.value)


def test_a_plugin_is_read_with_all_that_it_is_told_and_its_secrets_do_not_show(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"certificate-authority": "ca.crt", "tls-server-name": "n", "extensions": [{"name": "other"}, extension]}
    spec = NEVER | {
        "command": "./bin/login",
        "args": ["--token", "hidden"],
        "env": [{"name": "A", "value": "hidden"}],
        "provideClusterInfo": True,
        "installHint": "install it",
    }
    access = load_kubeconfig(written(tmp_path, config(user={"exec": spec}, **cluster)))
    plugin = access.exec_plugin
    assert plugin is not None and plugin.command == str(tmp_path / "bin" / "login")
    assert plugin.args == ("--token", "hidden") and plugin.env == (("A", "hidden"),)
    assert msgspec.json.decode(plugin.cluster) == {
        "server": "https://one:6443/",
        "certificate-authority-data": base64.b64encode(b"CA").decode(),
        "tls-server-name": "n",
        "config": {"audience": "x"},
    }
    assert "hidden" not in repr(access)


@pytest.mark.parametrize("other", [{"token": "t"}, {"client-certificate-data": base64.b64encode(b"C").decode()}])
def test_a_plugin_beside_other_credentials_is_not_asked(tmp_path: Path, other: dict[str, Any]) -> None:
    assert load_kubeconfig(written(tmp_path, config(user={"exec": NEVER, **other}))).exec_plugin is None


def test_beta_plugins_may_ask_where_there_is_somebody(tmp_path: Path) -> None:
    spec = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1beta1"}
    plugin = load_kubeconfig(written(tmp_path, config(user={"exec": spec}))).exec_plugin
    assert plugin is not None and (plugin.interactive_mode, plugin.command) == ("IfAvailable", "aws")

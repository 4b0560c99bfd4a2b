"""Reads kubeconfig files and a pod's service account: :func:`load_kubeconfig`, :func:`in_cluster`.

Called by ``assembly`` and the faces; returns a frozen :class:`ClusterAccess` for ``kube/transport/http.py``. Opens no
connection, writes nothing. As in client-go the first of several files that defines a name wins.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.execplugin import API_VERSIONS, INTERACTIVE_MODES, Credential, ExecPlugin, command_of
from syncline.kube.yaml.loading import YamlError, load

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_SERVER = "http://localhost:8080"


class KubeconfigError(ValueError):
    """An unusable kubeconfig; the message names file, entry, what was found and what to do."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Address, trust and credentials of one API server. Texts are PEM; a changed ``token_file`` is read again."""

    server: str
    ca_pem: str = ""
    certificate_pem: str = ""
    key_pem: Secret | None = None
    token: Secret | None = None
    token_file: Path | None = None
    namespace: str = "default"
    skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    exec_plugin: ExecPlugin | None = None
    """The credential plugin, if token and certificate are not given."""
    credential: Credential | None = None
    """The plugin's credential, if token or certificate come from it."""
    renewed: bool = False
    """True if this is the second credential, after the server refused the first."""
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A named part of a file; relative paths in it are resolved against the file's folder."""

    value: Obj
    folder: Path
    label: str


def load_kubeconfig(
    path: Path | str | None = None, context: str | None = None, *, environ: Mapping[str, str] | None = None
) -> ClusterAccess:
    """Return the access of a context (None: the current one).

    ``path`` None: the files of ``$KUBECONFIG``, or ``~/.kube/config``, or the pod's service account. Raises
    :class:`KubeconfigError`.
    """
    environ = os.environ if environ is None else environ
    files = [Path(path)] if path is not None else _default_files(environ)
    present = [file for file in files if file.is_file()]
    if not present:
        if path is None and context is None and environ.get("KUBERNETES_SERVICE_HOST"):
            return in_cluster(environ)
        listed = ", ".join(str(file) for file in files)
        raise KubeconfigError(f"there is no kubeconfig at {listed}; name one with --kubeconfig or KUBECONFIG")
    configs = [(file, _read(file)) for file in present]
    name = context or next((c["current-context"] for _, c in configs if c.get("current-context")), "")
    if not name:
        raise KubeconfigError(f"{present[0]}: no current-context is set; choose one with --context")
    chosen = _find(configs, "contexts", "context", name)
    cluster = _find(configs, "clusters", "cluster", str(chosen.value.get("cluster", "")))
    user_name = chosen.value.get("user")
    user = _find(configs, "users", "user", str(user_name)) if user_name else _Entry({}, chosen.folder, "user")
    return _access(name, chosen, cluster, user)


@dataclass(frozen=True, slots=True)
class NamedContext:
    """A context of a kubeconfig, without credentials."""

    name: str
    server: str
    file: Path
    current: bool = False


def named_contexts(
    path: Path | str | None = None, *, environ: Mapping[str, str] | None = None
) -> tuple[NamedContext, ...]:
    """Return the contexts of the files of :func:`load_kubeconfig`; for each name the first. Raises KubeconfigError."""
    environ = os.environ if environ is None else environ
    files = [Path(path)] if path is not None else _default_files(environ)
    configs = [(file, _read(file)) for file in files if file.is_file()]
    current = next((c["current-context"] for _, c in configs if c.get("current-context")), "")
    found: dict[str, NamedContext] = {}
    for file, config in configs:
        for item in config.get("contexts") or []:
            name = str(dig(item, "name", default=""))
            if name and name not in found:
                server = _server(configs, str(dig(item, "context", "cluster", default="")))
                found[name] = NamedContext(name, server, file, name == current)
    return tuple(found.values())


def _server(configs: list[tuple[Path, Obj]], cluster: str) -> str:
    try:
        return _string(_find(configs, "clusters", "cluster", cluster), "server")
    except KubeconfigError:
        return ""


def in_cluster(environ: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Return the access of a pod's service account; raises :class:`KubeconfigError` outside a pod."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    token = folder / "token"
    if not host or not token.is_file():
        raise KubeconfigError(f"not inside a pod: KUBERNETES_SERVICE_HOST or {token} is missing; give a kubeconfig")
    shown = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    return ClusterAccess(
        server=f"https://{shown}:{port}",
        ca_pem=_text(folder / "ca.crt"),
        token_file=token,
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


def _default_files(environ: Mapping[str, str]) -> list[Path]:
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def _read(file: Path) -> Obj:
    try:
        value = load(file.read_bytes(), file=str(file))
    except OSError as error:
        raise KubeconfigError(f"{file}: cannot be read ({error.strerror})") from error
    except YamlError as error:
        raise KubeconfigError(f"{file}: is no YAML or JSON: {error}") from error
    if value is not None and not isinstance(value, dict):
        raise KubeconfigError(f"{file}: is no kubeconfig; it must be an object with clusters, users and contexts")
    return value or {}


def _find(configs: list[tuple[Path, Obj]], field: str, inner: str, name: str) -> _Entry:
    known: list[str] = []
    for file, config in configs:
        for item in config.get(field) or []:
            label = str(dig(item, "name", default=""))
            known.append(label)
            if label == name:
                value = dig(item, inner, default={})
                return _Entry(value if isinstance(value, dict) else {}, file.parent, f'{file}: {inner} "{name}"')
    listed = ", ".join(known) or "none"
    raise KubeconfigError(f'{configs[0][0]}: there is no {inner} "{name}"; known {field}: {listed}')


def _access(name: str, context: _Entry, cluster: _Entry, user: _Entry) -> ClusterAccess:
    provider = user.value.get("auth-provider")
    if provider:
        raise KubeconfigError(
            f"{user.label}: auth-provider {dig(provider, 'name', default='')} is not supported, nor is it by "
            "Kubernetes' own clients since 1.26; use your provider's exec plugin (gke-gcloud-auth-plugin, kubelogin)"
        )
    if user.value.get("username"):
        raise KubeconfigError(f"{user.label}: user name and password are not supported; use a token")
    key = _pem(user, "client-key")
    token = _string(user, "token")
    token_file = _string(user, "tokenFile")
    groups: Any = user.value.get("as-groups") or []
    certificate = _pem(user, "client-certificate")
    proxy = _proxy(cluster)
    plugin = _plugin(user, cluster) if user.value.get("exec") and not (token or token_file or certificate) else None
    return ClusterAccess(
        server=(_string(cluster, "server") or DEFAULT_SERVER).rstrip("/"),
        ca_pem=_pem(cluster, "certificate-authority"),
        certificate_pem=certificate,
        key_pem=Secret(key) if key else None,
        token=Secret(token) if token else None,
        token_file=user.folder / token_file if token_file and not token else None,
        namespace=_string(context, "namespace") or "default",
        skip_tls_verify=bool(cluster.value.get("insecure-skip-tls-verify")),
        tls_server_name=_string(cluster, "tls-server-name"),
        proxy_url=proxy,
        exec_plugin=plugin,
        impersonate_user=_string(user, "as"),
        impersonate_groups=tuple(str(group) for group in groups),
        context=name,
    )


def _proxy(cluster: _Entry) -> str:
    url = _string(cluster, "proxy-url")
    if url and urlsplit(url).scheme != "http":
        # The value may hold a password, so it is not repeated.
        raise KubeconfigError(f"{cluster.label}: proxy-url: only proxies at http:// are supported")
    return url


def _plugin(user: _Entry, cluster: _Entry) -> ExecPlugin:
    spec = user.value["exec"]
    spec = spec if isinstance(spec, dict) else {}
    label = f"{user.label}: exec"
    command, version = str(spec.get("command") or ""), str(spec.get("apiVersion") or "")
    if not command:
        raise KubeconfigError(f"{label}.command: is missing; name the program that gives credentials")
    if version not in API_VERSIONS:
        raise KubeconfigError(f'{label}.apiVersion: is "{version}"; write one of {", ".join(API_VERSIONS)}')
    mode = str(spec.get("interactiveMode") or ("" if version == API_VERSIONS[0] else "IfAvailable"))
    if mode not in INTERACTIVE_MODES:
        raise KubeconfigError(f'{label}.interactiveMode: is "{mode}"; write one of {", ".join(INTERACTIVE_MODES)}')
    env = spec.get("env") or []
    args = spec.get("args") or []
    if not isinstance(env, list) or not all(isinstance(each, dict) and each.get("name") for each in env):
        raise KubeconfigError(f"{label}.env: is no list of name and value")
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        raise KubeconfigError(f"{label}.args: is no list of texts")
    return ExecPlugin(
        command_of(command, user.folder),
        tuple(args),
        tuple((str(each["name"]), str(each.get("value") or "")) for each in env),
        version,
        mode,
        _cluster_info(cluster) if spec.get("provideClusterInfo") else "",
        str(spec.get("installHint") or ""),
        user.label,
    )


EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def _cluster_info(cluster: _Entry) -> str:
    """Return the cluster as JSON for a plugin (ExecCredential's ``spec.cluster``)."""
    fields: Obj = {"server": _string(cluster, "server")}
    for field in ("tls-server-name", "proxy-url"):
        if _string(cluster, field):
            fields[field] = _string(cluster, field)
    if cluster.value.get("insecure-skip-tls-verify"):
        fields["insecure-skip-tls-verify"] = True
    ca = _pem(cluster, "certificate-authority")
    if ca:
        fields["certificate-authority-data"] = base64.b64encode(ca.encode()).decode()
    for extension in cluster.value.get("extensions") or ():
        if dig(extension, "name") == EXEC_EXTENSION:
            fields["config"] = dig(extension, "extension")
    return json.dumps(fields, sort_keys=True)


def _string(entry: _Entry, field: str) -> str:
    value = entry.value.get(field)
    return value if isinstance(value, str) else ""


def _pem(entry: _Entry, field: str) -> str:
    """Return ``field``-data decoded from base64, or the content of the file ``field``; data wins, as in client-go."""
    data = _string(entry, f"{field}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise KubeconfigError(f"{entry.label}: {field}-data is not PEM in base64") from error
    file = _string(entry, field)
    return _text(entry.folder / file, f"{entry.label}: {field} ") if file else ""


def _text(file: Path, label: str = "") -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{label}{file} cannot be read: {error}") from error

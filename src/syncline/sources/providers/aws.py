"""Signs requests to AWS with the identity of the process: :func:`signed`, :func:`own_identity`.

Signature Version 4, and the ways in which a workload gets an identity: keys in the environment, a web identity (IAM
roles for service accounts), a container's address (EKS Pod Identity, ECS). Files below ``~/.aws`` and the role of the
machine are not read. Rules: AWS' General Reference and SDKs.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.client import Client, Host
from syncline.sources.providers.model import ProviderError
from syncline.sources.providers.reach import Reach

_ALGORITHM = "AWS4-HMAC-SHA256"
_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,30}")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII)
_CONTAINER_HOSTS = ("127.0.0.1", "::1", "localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23")
"""Where a container asks for its credentials over plain HTTP, as the SDKs."""
_MAX_TOKEN = 65_536
_SESSION = "syncline"
PROCESS = "the process"
"""Who asks without a role."""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Keys, for a while or for ever."""

    key: str
    secret: Secret
    session: Secret | None = None


@dataclass(frozen=True, slots=True)
class AwsRequest:
    """What is signed: a request to one service of a region."""

    url: str
    service: str
    region: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)


def signed(request: AwsRequest, identity: Identity, now: datetime) -> dict[str, str]:
    """Return the headers that sign a request. Pure. ``request.headers`` are signed and have to be sent as well."""
    parts, moment = urlsplit(request.url), now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"X-Amz-Date": moment}
    if identity.session is not None:
        added["X-Amz-Security-Token"] = identity.session.reveal()
    given = {"host": parts.netloc, **request.headers, **added}
    lines = sorted((name.lower(), " ".join(value.split())) for name, value in given.items())
    names = ";".join(name for name, _ in lines)
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(parts.query, True))
    canonical = "\n".join(
        (
            request.method,
            quote(parts.path or "/", safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{value}" for name, value in lines),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = f"{moment[:8]}/{request.region}/{request.service}/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{identity.secret.reveal()}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    value = f"{_ALGORITHM} Credential={identity.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**added, "Authorization": value}


def region_of(wanted: str, environment: Mapping[str, str]) -> str:
    """Return the region of a generator, else that of the process. Raises :class:`SourceError`."""
    region = wanted or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    if not _REGION.fullmatch(region):
        fix = "give a region such as eu-central-1 in awsCodeCommit.region, or set AWS_REGION of the controller"
        raise ProviderError(
            Problem.INVALID, f"AWS region {region!r} is no region", field="awsCodeCommit.region", fix=fix
        )
    return region


def endpoint(service: str, region: str, reach: Reach) -> str:
    """Return the address of a service in a region."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return reach.bases[service].format(region=region, domain=domain)


def identity_for(role: str, region: str, reach: Reach) -> Identity:
    """Return the identity of the process, or that of ``role`` if one is named. Raises :class:`SourceError`."""
    own = own_identity(region, reach)
    if not role:
        return own
    if not _ROLE.fullmatch(role):
        raise ProviderError(Problem.INVALID, f"role {role!r} is no ARN of a role", field="awsCodeCommit.role")
    return _assumed({"Action": "AssumeRole", "RoleArn": role, "RoleSessionName": _SESSION}, own, region, reach)


def own_identity(region: str, reach: Reach) -> Identity:
    """Return the identity of the process, from the first way that its environment names. Raises
    :class:`SourceError`."""
    given = reach.environment
    if given.get("AWS_ACCESS_KEY_ID") and given.get("AWS_SECRET_ACCESS_KEY"):
        session = given.get("AWS_SESSION_TOKEN")
        keys = given["AWS_ACCESS_KEY_ID"], Secret(given["AWS_SECRET_ACCESS_KEY"])
        return Identity(*keys, Secret(session) if session else None)
    if given.get("AWS_WEB_IDENTITY_TOKEN_FILE") and given.get("AWS_ROLE_ARN"):
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "RoleArn": given["AWS_ROLE_ARN"],
            "RoleSessionName": given.get("AWS_ROLE_SESSION_NAME") or _SESSION,
            "WebIdentityToken": _file(given["AWS_WEB_IDENTITY_TOKEN_FILE"]),
        }
        return _assumed(form, None, region, reach)
    if given.get("AWS_CONTAINER_CREDENTIALS_FULL_URI") or given.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        return _of_container(reach)
    ways = "AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE or AWS_CONTAINER_CREDENTIALS_FULL_URI"
    raise ProviderError(Problem.DENIED, "AWS: the controller has no identity", fix=f"its environment needs {ways}")


def _file(name: str) -> str:
    try:
        with Path(name).open(encoding="utf-8") as file:
            return file.read(_MAX_TOKEN).strip()
    except (OSError, ValueError) as error:
        raise ProviderError(
            Problem.DENIED, f"AWS: the token in {name} cannot be read: {type(error).__name__}"
        ) from None


def _assumed(form: Mapping[str, str], own: Identity | None, region: str, reach: Reach) -> Identity:
    """Ask the security token service for the keys of a role."""
    url = endpoint("sts", region, reach)
    body = urlencode({**form, "Version": "2011-06-15"}).encode()
    host = Host("AWS STS", url, secret=Secret(form.get("WebIdentityToken", "")), identity=PROCESS)
    request = AwsRequest(url, "sts", region, headers=FORM, body=body)
    headers = signed(request, own, reach.clock.now()) if own is not None else {}
    with closing(Client(host, reach)) as client:
        answer = client.post(body, FORM, headers).body.decode("utf-8", "replace")
    found = [
        re.search(rf"<{name}>([^<]+)</{name}>", answer) for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")
    ]
    key, secret, session = (match[1].strip() if match else "" for match in found)
    if not (key and secret and session):
        raise ProviderError(Problem.INVALID, f"AWS STS: {form['Action']} gives no keys")
    return Identity(key, Secret(secret), Secret(session))


class _Keys(msgspec.Struct, rename={"key": "AccessKeyId", "secret": "SecretAccessKey", "session": "Token"}):
    key: str
    secret: str
    session: str | None = None


def _of_container(reach: Reach) -> Identity:
    """Ask the address that the environment of a container names, which may lie in a network forbidden to tenants."""
    given = reach.environment
    relative = given.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
    url = given.get("AWS_CONTAINER_CREDENTIALS_FULL_URI") or f"http://169.254.170.2{relative}"
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _CONTAINER_HOSTS:
        raise ProviderError(
            Problem.REFUSED, "AWS: AWS_CONTAINER_CREDENTIALS_FULL_URI is no address of a container host"
        )
    named = given.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    token = _file(named) if named else given.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    headers = {"Authorization": token} if token else {}
    host = Host(
        "AWS credentials of the container",
        f"{parts.scheme}://{parts.netloc}/",
        secret_headers=headers,
        secret=Secret(token) if token else None,
    )
    with closing(Client(host, replace(reach, networks=()))) as client:
        found = client.get(_Keys, f"{parts.path.lstrip('/')}{'?' + parts.query if parts.query else ''}").value
    return Identity(found.key, Secret(found.secret), Secret(found.session) if found.session else None)

"""Repositories and their credentials as argocd's API has them, and as Secrets hold them: :class:`Form`.

A record is a JSON value with upstream's field names; empty fields are left out. Pure. Rules: Argo CD
``util/db/repository_secrets.go`` and ``repository_types.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from syncline.argo.stores.secrets import ARGO_CD, LABEL, MANAGED_BY, encoded, fields_of
from syncline.kube.objects import Obj, dig, meta

GO_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
"""The texts that Go reads as a boolean."""
_TEXTS = (
    "username",
    "password",
    "bearerToken",
    "sshPrivateKey",
    "tlsClientCertData",
    "tlsClientCertKey",
    "type",
    "githubAppPrivateKey",
    "githubAppEnterpriseBaseUrl",
    "proxy",
    "noProxy",
    "gcpServiceAccountKey",
    "azureServicePrincipalClientId",
    "azureServicePrincipalClientSecret",
    "azureServicePrincipalTenantId",
    "azureActiveDirectoryEndpoint",
)
_FLAGS = ("enableOCI", "insecureOCIForceHttp", "forceHttpBasicAuth", "useAzureWorkloadIdentity")
_NUMBERS = ("githubAppID", "githubAppInstallationID")
CREDENTIALS = (
    "username",
    "password",
    "bearerToken",
    "sshPrivateKey",
    "tlsClientCertData",
    "githubAppPrivateKey",
    "useAzureWorkloadIdentity",
    "azureServicePrincipalClientSecret",
)
"""Any of these, and nothing is taken over from credentials for many repositories."""
_FOLLOWING = ("enableOCI", "insecureOCIForceHttp", "forceHttpBasicAuth", "useAzureWorkloadIdentity")
"""Fields that are taken over as they are, even if false."""
_SHOWN = (
    "repo",
    "type",
    "name",
    "username",
    "enableLfs",
    "enableOCI",
    "proxy",
    "noProxy",
    "project",
    "forceHttpBasicAuth",
    "inheritedCreds",
    "githubAppID",
    "githubAppInstallationID",
    "githubAppEnterpriseBaseUrl",
    "useAzureWorkloadIdentity",
    "azureActiveDirectoryEndpoint",
    "azureServicePrincipalClientId",
    "azureServicePrincipalTenantId",
)
_GO_NAMES = {
    "url": "URL",
    "sshPrivateKey": "SSHPrivateKey",
    "tlsClientCertData": "TLSClientCertData",
    "tlsClientCertKey": "TLSClientCertKey",
    "enableLfs": "EnableLFS",
    "githubAppID": "GithubAppId",
    "githubAppInstallationID": "GithubAppInstallationId",
    "githubAppEnterpriseBaseUrl": "GitHubAppEnterpriseBaseURL",
    "gcpServiceAccountKey": "GCPServiceAccountKey",
}


class RecordError(ValueError):
    """A field of a Secret that upstream cannot read; ``record`` is what was read before it."""

    def __init__(self, message: str, record: Obj) -> None:
        super().__init__(message)
        self.record = record


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of record: its texts, flags and numbers. ``renamed``: record field → key of the Secret's data."""

    address: str
    """The field that holds the URL, under which the Secret is found."""
    texts: tuple[str, ...]
    flags: tuple[str, ...]
    numbers: tuple[str, ...]
    renamed: Mapping[str, str]

    def key(self, field: str) -> str:
        return self.renamed.get(field, field)

    def read(self, secret: Obj) -> Obj:
        """Return the record of a Secret. Raises :class:`RecordError`."""
        data = fields_of(secret)
        found: Obj = {field: data[self.key(field)] for field in self.texts if data.get(self.key(field))}
        for field in (*self.flags, *self.numbers):
            text = data.get(self.key(field))
            if text is None:
                continue
            value = _number(text) if field in self.numbers else GO_BOOLS.get(text)
            if value is None:
                what = "a whole number" if field in self.numbers else "true or false"
                raise RecordError(f"{self.key(field)} is not {what}", found)
            if value:
                found[field] = value
        return found

    def written(self, record: Obj, secret: Obj, kind: str) -> Obj:
        """Return a Secret of type ``kind`` that holds a record. Keys of the Secret that the record leaves empty are
        kept, empty; keys that the API does not know stay."""
        data = dict(dig(secret, "data", default={}) or {})
        fields = {field: str(record.get(field) or "") for field in self.texts}
        fields |= {field: "true" if record.get(field) else "false" for field in self.flags}
        fields |= {field: str(int(record.get(field) or 0)) for field in self.numbers}
        for field, text in fields.items():
            if self.key(field) in data or record.get(field):
                data |= encoded({self.key(field): text})
        metadata = dict(meta(secret))
        metadata["annotations"] = {**(metadata.get("annotations") or {}), MANAGED_BY: ARGO_CD}
        metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: kind}
        return secret | {"metadata": metadata, "data": data}


REPOSITORY = Form(
    "repo",
    ("repo", "name", "project", *_TEXTS),
    (*_FLAGS, "insecureIgnoreHostKey", "insecure", "enableLfs", "webhookManifestCacheWarmDisabled"),
    (*_NUMBERS, "depth"),
    {"repo": "url"},
)
CREDENTIAL = Form(
    "url",
    ("url", *_TEXTS),
    _FLAGS,
    _NUMBERS,
    {
        "azureServicePrincipalClientId": "azureServicePrincipalClientID",
        "azureServicePrincipalTenantId": "azureServicePrincipalTenantID",
    },
)


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def has_credentials(record: Obj) -> bool:
    """Return whether a record has credentials of its own."""
    return any(record.get(field) for field in CREDENTIALS)


def with_credentials(record: Obj, shared: Obj | None) -> Obj:
    """Return a record whose empty fields come from credentials for many repositories."""
    if shared is None:
        return record
    texts = {field: shared[field] for field in (*_TEXTS, *_NUMBERS) if shared.get(field) and not record.get(field)}
    kept = {field: value for field, value in record.items() if field not in _FOLLOWING}
    return kept | texts | {field: True for field in _FOLLOWING if shared.get(field)}


def shown(record: Obj) -> Obj:
    """Return what may be seen of a repository: no password, no key, no token."""
    made = {field: record[field] for field in (*_SHOWN, "depth") if record.get(field)}
    made.setdefault("type", "oci" if made.get("repo", "").startswith("oci://") else "git")
    if any(record.get(field) for field in ("insecure", "insecureIgnoreHostKey", "insecureOCIForceHttp")):
        made["insecure"] = True
    return made


def comparable(record: Obj) -> Obj:
    """Return the fields of a record that say something; how its connection is does not count."""
    return {field: value for field, value in record.items() if value and field != "connectionState"}


def differing(one: Obj, other: Obj) -> tuple[str, ...]:
    """Return the fields in which records differ, as upstream's types name them, sorted."""
    fields = {field for field in one.keys() | other.keys() if one.get(field) != other.get(field)}
    return tuple(sorted(_GO_NAMES.get(field, field[0].upper() + field[1:]) for field in fields))


def different(what: str, keys: Iterable[str]) -> str:
    """Return upstream's refusal to replace something that differs in ``keys``."""
    listed = ",".join(keys)
    basic = f"existing {what} spec is different; use upsert flag to force update"
    return f'{basic}; difference in keys "{listed}"' if listed else basic


# --- addresses ------------------------------------------------------------------------------------------------------


def normal_url(url: str) -> str:
    """Return the form in which upstream compares addresses; empty for one that cannot be read."""
    url = url.strip().lower()
    before, at, after = url.removeprefix("ssh://").partition("@")
    if at and "@" not in after and after and not any(letter in before for letter in "/:"):
        url = url if url.startswith("ssh://") else f"ssh://{url.replace(':', '/', 1)}"
    url = url.removesuffix(".git")
    return url.removeprefix("ssh://") if _is_address(url) else ""


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).port != -1
    except ValueError:
        return False


def same_url(one: str, other: str) -> bool:
    """Return whether two addresses are those of one repository, as upstream compares them."""
    left, right = normal_url(one) or one, normal_url(other) or other
    return bool(left) and left == right


def declared_as(records: Iterable[tuple[Any, Obj]], url: str, project: str, *, fallback: bool) -> Any:
    """Return what goes with the repository of ``url`` in ``project``, else (``fallback``) with that of no project, or
    None."""
    found = None
    for beside, record in records:
        if not same_url(record.get("repo", ""), url):
            continue
        if record.get("project", "") == project:
            return beside
        if fallback and not record.get("project"):
            found = beside
    return found


def longest_prefix(records: Iterable[Obj], url: str) -> Obj | None:
    """Return the credentials whose URL is the longest beginning of ``url``, or None. Unlike upstream a host must match
    completely, as where repositories are read (``sources/remote/credentials.py``)."""
    wanted, longest, found = normal_url(url), 0, None
    for record in records:
        start = normal_url(record.get("url", ""))
        rest = wanted[len(start) :]
        whole = "/" in start.split("://", 1)[-1] or not rest or rest[0] in "/:"
        if wanted.startswith(start) and whole and len(start) > longest:
            longest, found = len(start), record
    return found

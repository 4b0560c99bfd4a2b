"""Computes blocked and allowed registries, policy.json and search order from the cluster's image configuration.

The repository of the cluster's own release stays reachable. Source: reference machine-config 1.6,
``pkg/controller/container-runtime-config/helpers.go``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.generating.runtime.files import RuntimeFile
from syncline.machineconfig.generating.runtime.mirrors import (
    MirrorRules,
    RegistryError,
    check_scopes,
    conf_text,
    edited,
    is_nested,
)

REGISTRIES_PATH = "/etc/containers/registries.conf"
POLICY_PATH = "/etc/containers/policy.json"
SEARCH_PATH = "/etc/containers/registries.conf.d/01-image-searchRegistries.conf"

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_COMPONENT}(?:/{_COMPONENT})*)(?::\w[\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_SHA256 = re.compile(r".*@sha256:[0-9a-f]{64}|[^@]*")
MAX_NAME = 255


class PayloadError(RegistryError):
    """The release image has no repository; the controller stops at this error."""

    def __init__(self) -> None:
        super().__init__("error parsing reference of release image")


@dataclass(frozen=True, slots=True)
class RegistryLists:
    """The lists of registries. ``blocked`` for registries.conf; ``policy_blocked`` and ``allowed`` for policy.json;
    None: unset. ``error``: why an entry was left out."""

    blocked: tuple[str, ...] | None = None
    policy_blocked: tuple[str, ...] | None = None
    allowed: tuple[str, ...] | None = None
    error: str | None = None


def _named(reference: str) -> str | None:
    """Return the repository of a full image reference (with a domain, as written), or None."""
    domain, slash, rest = reference.partition("/")
    whole = _REFERENCE.fullmatch(reference)
    if not whole or not slash or not ("." in domain or ":" in domain or domain == "localhost"):
        return None
    official = domain == "docker.io" and "/" not in rest
    if domain == "index.docker.io" or official or len(whole["name"]) > MAX_NAME or not _SHA256.fullmatch(reference):
        return None
    return whole["name"]


def registry_lists(release_image: str, image_spec: Obj | None, rules: MirrorRules) -> RegistryLists:
    """Return the blocked and allowed registries. Raises PayloadError.

    A blocked entry that covers the payload is dropped with an error, unless a digest mirror of the payload is not
    blocked: then the entry stays, and the payload's repository is allowed by name.
    """
    if image_spec is None:
        return RegistryLists()
    repository = _named(release_image)
    if repository is None:
        raise PayloadError
    sources = image_spec.get("registrySources") or {}
    blocked: list[str] = []
    policy_blocked: list[str] = []
    allowed: list[str] = []
    refused: list[str] = []
    for entry in sources.get("blockedRegistries") or ():
        if not is_nested(repository, entry):
            blocked.append(entry)
            policy_blocked.append(entry)
            continue
        try:
            reachable = _has_open_mirror(release_image, repository, sources, rules)
        except RegistryError as error:
            return RegistryLists(error=str(error))
        if not reachable:
            refused.append(entry)
            continue
        blocked.append(entry)
        if repository != entry:
            policy_blocked.append(entry)
        allowed.append(repository)
    allowed += sources.get("allowedRegistries") or ()
    return RegistryLists(
        tuple(blocked) or None, tuple(policy_blocked) or None, tuple(allowed) or None, _refusal(refused)
    )


def _refusal(refused: Sequence[str]) -> str | None:
    if not refused:
        return None
    listed = " ".join(quoted(one) for one in refused)
    return f"error adding [{listed}] to blocked registries, cannot block the repository being used by the payload"


def _has_open_mirror(image: str, repository: str, sources: Obj, rules: MirrorRules) -> bool:
    """Return whether the payload can be pulled by digest from a mirror or source that is not blocked."""
    blocked = sources.get("blockedRegistries") or []
    digest_only = MirrorRules(rules.digest_sets, (), rules.source_policies)
    conf = edited({}, sources.get("insecureRegistries") or [], blocked, digest_only)
    best: Obj = {}
    for entry in conf["registry"]:
        prefix = _prefix(entry)
        if _match_end(repository, prefix) >= 0 and len(prefix) > len(_prefix(best)):
            best = entry
    by_digest = "@" in image
    mirrors = [one for one in best.get("mirror") or () if by_digest or one.get("pull-from-mirror") != "digest-only"]
    for endpoint in (*mirrors, best):
        location = str(endpoint.get("location") or "")
        where = _named(location + image[_match_end(image, _prefix(best)) :]) if location else repository
        if where is None:
            raise RegistryError("rewriting reference: invalid reference format")
        if not any(is_nested(where, entry) for entry in blocked):
            return True
    return False


def _prefix(entry: Obj) -> str:
    return str(entry.get("prefix") or entry.get("location") or "").rstrip("/")


def _match_end(reference: str, prefix: str) -> int:
    """Return the end of ``prefix`` in ``reference`` if it matches whole parts, else -1."""
    if prefix.startswith("*."):
        at = reference.find(prefix[1:])
        if at < 0 or "/" in reference[:at]:
            return -1
        end = at + len(prefix) - 1
    elif prefix and reference.startswith(prefix):
        end = len(prefix)
    else:
        return -1
    return end if end == len(reference) or reference[end] in ":/@" else -1


def wants_registries(sources: Obj, lists: RegistryLists, rules: MirrorRules) -> bool:
    """Return whether registries.conf must be written; an empty list of insecure registries counts, too."""
    return sources.get("insecureRegistries") is not None or lists.blocked is not None or bool(rules)


_ACCEPT: Obj = {"type": "insecureAcceptAnything"}
_REJECT: Obj = {"type": "reject"}
_REQUIREMENTS = ("insecureAcceptAnything", "reject", "signedBy", "signedBaseLayer", "sigstoreSigned")


def policy_json(template: str, lists: RegistryLists, release_image: str) -> str:
    """Return the text of /etc/containers/policy.json. Raises RegistryError.

    If any registry is allowed, only those are; otherwise all but the blocked ones.
    """
    blocked, allowed = lists.policy_blocked or (), lists.allowed or ()
    if blocked and allowed:
        repository = _named(release_image)
        if repository is None:
            raise PayloadError
        if list(allowed) != [repository]:
            message = "only one of AllowedRegistries or BlockedRegistries may be specified"
            raise RegistryError(f"invalid images config: {message}")
    if not blocked and not allowed:
        return template
    check_scopes((("blocked", blocked), ("allowed", allowed)), MirrorRules())
    policy = _decoded(template)
    scopes: Obj = {}
    if allowed:
        policy["default"] = [_REJECT]
        scopes |= {scope: [_ACCEPT] for scope in allowed}
    if blocked:
        policy["default"] = [_ACCEPT]
        scopes |= {scope: [_REJECT] for scope in blocked}
    policy["transports"]["docker"] = scopes
    # The transport "atomic" knows no scopes of three parts below the registry.
    policy["transports"]["atomic"] = {scope: scopes[scope] for scope in scopes if scope.count("/") < 3}
    policy["transports"] = {
        name: {scope: policy["transports"][name][scope] for scope in sorted(policy["transports"][name])}
        for name in sorted(policy["transports"])
    }
    return json.dumps(policy, indent=2, ensure_ascii=False)


def _decoded(template: str) -> Obj:
    try:
        found = json.loads(template)
    except (ValueError, RecursionError) as error:
        raise RegistryError(f"error decoding policy json: {error}") from error
    if not isinstance(found, dict) or set(found) - {"default", "transports"}:
        raise RegistryError("error decoding policy json: it has the keys default and transports, and no other")
    if not isinstance(found.get("default"), list):
        raise RegistryError("error decoding policy json: Default policy is missing")
    transports = found.get("transports") or {}
    if not isinstance(transports, dict) or not all(isinstance(one, dict) for one in transports.values()):
        raise RegistryError("error decoding policy json: transports is not an object of objects")
    for requirements in (found["default"], *(one for scopes in transports.values() for one in scopes.values())):
        _check_requirements(requirements)
    return {"default": found["default"], "transports": dict(transports)}


def _check_requirements(found: object) -> None:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise RegistryError("error decoding policy json: requirements are not a list of objects")
    if not found:
        raise RegistryError("error decoding policy json: List of verification policy requirements must not be empty")
    for each in found:
        kind = each.get("type", "")
        if kind not in _REQUIREMENTS:
            raise RegistryError(f"error decoding policy json: Unknown policy requirement type {quoted(str(kind))}")


def search_file(registries: Sequence[str]) -> RuntimeFile:
    """Return the drop-in with the search registries for images without a registry."""
    return RuntimeFile(SEARCH_PATH, conf_text({"unqualified-search-registries": list(registries)}))

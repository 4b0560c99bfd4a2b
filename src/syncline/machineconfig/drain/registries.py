"""Decides whether a change of ``/etc/containers/registries.conf`` needs no drain; pure.

Only additions that cannot affect pulls by tag are safe: search registries at the end, mirrors and registries for
digests only (source: Machine Config Operator ``isSafeContainerRegistryConfChanges``). Used by the node agent and by
forecasts.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from syncline.ignition.dataurl import DataUrlError, decode_data_url
from syncline.kube.objects import Obj, dig

PATH = "/etc/containers/registries.conf"
DIGEST_ONLY = "digest-only"


class RegistriesError(ValueError):
    """The content is no valid registries.conf; the message begins as upstream's."""


@dataclass(frozen=True, slots=True)
class _Registry:
    prefix: str
    location: str
    blocked: bool
    insecure: bool
    digest_only: bool
    mirrors: tuple[tuple[str, str], ...]
    """Location and ``pull-from-mirror``, in order."""

    def mirror(self, location: str) -> str | None:
        return next((pull for where, pull in self.mirrors if where == location), None)

    @property
    def digests_everywhere(self) -> bool:
        if not self.mirrors:
            return self.digest_only
        return all(pull == DIGEST_ONLY for _, pull in self.mirrors)


@dataclass(frozen=True, slots=True)
class _Config:
    search: tuple[str, ...]
    registries: dict[str, _Registry]
    """By prefix, else location; the last of equal ones is used."""


def configs_change_safely(old: Obj, new: Obj) -> bool:
    """Return the same for two Ignition configs. As upstream, ``compression`` is ignored: packed contents are refused.

    Raises :class:`RegistriesError`.
    """
    return change_is_safe(_contents(old, ": "), _contents(new, " "))


def _contents(config: Obj, colon: str) -> bytes:
    for file in dig(config, "storage", "files", default=[]):
        if file.get("path") == PATH:
            source = dig(file, "contents", "source")
            try:
                return b"" if source is None else decode_data_url(str(source))
            except DataUrlError as error:
                raise RegistriesError(f"failed decoding Data URL scheme string{colon}{error}") from None
    return b""


def change_is_safe(old: bytes, new: bytes) -> bool:
    """Return whether a change is safe; ``old`` and ``new`` may be empty. Raises :class:`RegistriesError`."""
    before, after = _read(old), _read(new)
    if before.search != after.search[: len(before.search)]:
        return False
    if not before.registries.keys() <= after.registries.keys():
        return False
    for scope, registry in after.registries.items():
        known = before.registries.get(scope)
        if known is None:
            if not registry.digests_everywhere:
                return False
        elif known != registry and not _stays_safe(known, registry):
            return False
    return True


def _stays_safe(old: _Registry, new: _Registry) -> bool:
    if (old.prefix, old.location, old.blocked, old.insecure) != (new.prefix, new.location, new.blocked, new.insecure):
        return False
    if any(new.mirror(where) is None for where, _ in old.mirrors):
        return False
    for where, pull in new.mirrors:
        before = old.mirror(where)
        if before is None and pull != DIGEST_ONLY and not new.digest_only:
            return False
        if before is not None and pull not in (before, DIGEST_ONLY):
            return False
    return True


def _read(content: bytes) -> _Config:
    try:
        found = _folded(tomllib.loads(content.decode("utf-8")))
        listed = [_registry(each) for each in _tables(found, "registry")]
        search = tuple(_text(each, "") for each in _list(found, "unqualified-search-registries"))
        _check_others(found)
    except UnicodeDecodeError:
        raise RegistriesError(f"failed decoding TOML content from file {PATH}: it is no UTF-8 text") from None
    except (ValueError, TypeError) as error:
        raise RegistriesError(f"failed decoding TOML content from file {PATH}: {error}") from None
    return _Config(search, {registry.prefix or registry.location: registry for registry in listed})


def _check_others(found: dict[str, Any]) -> None:
    """Check the types of keys that are otherwise ignored."""
    for key in ("short-name-mode", "additional-layer-store-auth-helper"):
        _text(found.get(key), "")
    for each in _list(found, "credential-helpers"):
        _text(each, "")
    aliases = found.get("aliases", {})
    if not isinstance(aliases, dict):
        raise TypeError("incompatible types: aliases has to be a table")
    for each in aliases.values():
        _text(each, "")


def _registry(table: dict[str, Any]) -> _Registry:
    _text(table.get("pull-from-mirror"), "")
    for each in _tables(table, "mirror"):
        _flag(each, "insecure")
    mirrors = tuple(
        (_text(each.get("location"), ""), _text(each.get("pull-from-mirror"), "")) for each in _tables(table, "mirror")
    )
    return _Registry(
        _text(table.get("prefix"), ""),
        _text(table.get("location"), ""),
        _flag(table, "blocked"),
        _flag(table, "insecure"),
        _flag(table, "mirror-by-digest-only"),
        mirrors,
    )


def _folded(table: dict[str, Any]) -> dict[str, Any]:
    """Return the table with keys in any case, exact ones first, as Go's decoder finds them."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key.lower() not in found or key == key.lower():
            found[key.lower()] = value
    return found


def _tables(table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = _list(table, key)
    if not all(isinstance(each, dict) for each in found):
        raise TypeError(f"{key} has to be a list of tables")
    return [_folded(each) for each in found]


def _list(table: dict[str, Any], key: str) -> list[Any]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise TypeError(f"incompatible types: {key} has to be a list")
    return found


def _text(value: Any, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        raise TypeError(f"incompatible types: {value!r} has to be a text")
    return value


def _flag(table: dict[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise TypeError(f"incompatible types: {key} has to be true or false")
    return value

"""A cache of comparison results: manifest against a version of its live object.

A comparison is a pure function; its result is cached by all its inputs: the manifest's content, uid and resourceVersion
of the live object (where its status is ignored, its content without that), and the settings. So a refresh costs what
changed, not what exists. Bounded.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from syncline.apply.annotations import has_option
from syncline.apply.diff.compare import compare_objects
from syncline.apply.diff.model import DiffMode, DiffResult, DiffSettings
from syncline.apply.diff.normalize import reads_status
from syncline.kube.objects import Obj, gvk_of, meta, resource_version, uid_of
from syncline.kube.schema.model import schema_for

MAX_VERDICTS = 200_000
"""About 20 MB: the objects of more applications than one machine manages."""

Compare = Callable[[Obj | None, Obj | None, DiffSettings], DiffResult]
_Key = tuple[bytes, str, str | bytes, str]
COUNTED = ("resourceVersion", "generation", "managedFields")
"""Metadata that each write changes, and that a three-way comparison has on both sides."""


class Verdicts:
    """The cache, one per process; it evicts the least recently used."""

    def __init__(self, limit: int = MAX_VERDICTS, compare: Compare = compare_objects) -> None:
        self._known: OrderedDict[_Key, bool] = OrderedDict()
        self._limit = limit
        self._compare = compare

    def modified(self, target: Obj | None, live: Obj | None, settings: DiffSettings, settings_key: str) -> bool:
        """Return whether they differ, from the cache or by :func:`compare_objects`. Raises DiffError, which is not
        cached."""
        key = _key(target, live, settings, settings_key)
        if key is None:
            return self._compare(target, live, settings).modified
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._compare(target, live, settings).modified
            if len(self._known) > self._limit:
                self._known.popitem(last=False)
        else:
            with contextlib.suppress(KeyError):  # evicted meanwhile: large plans are made in threads
                self._known.move_to_end(key)
        return known


def settings_key(settings: DiffSettings) -> str:
    """Return all settings that affect a result, as text; :func:`_key` handles schemas."""
    parts = (settings.mode, settings.ignore, sorted(settings.overrides.items()), settings.ignore_aggregated_roles)
    return repr((*parts, settings.tracking, settings.include_mutation_webhook, settings.dry_run_name))


def _key(target: Obj | None, live: Obj | None, settings: DiffSettings, settings_text: str) -> _Key | None:
    """Return the cache key, or None if an input has no name: a dry run without a name, or the schema of a custom
    resource."""
    if (
        target is None
        or live is None
        or (settings.dry_run is not None and not settings.dry_run_name)
        or not resource_version(live)
    ):
        return None
    structured = settings.mode is not DiffMode.THREE_WAY or has_option(target, "ServerSideApply=true")
    if structured and schema_for(gvk_of(target)) is None:
        return None
    version = resource_version(live) if structured or reads_status(live, settings) else _digest(_stated(live))
    return _digest(target), uid_of(live), version, settings_text


def _digest(obj: Obj) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(obj, order="deterministic"), digest_size=16).digest()


def _stated(live: Obj) -> Obj:
    """Return what of a live object a three-way comparison depends on: who reports status does not change it."""
    metadata = {key: value for key, value in meta(live).items() if key not in COUNTED}
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": metadata}

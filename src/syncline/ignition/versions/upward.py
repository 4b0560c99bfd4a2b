"""A configuration of spec 3.x at a newer 3.y, one step at a time. Nothing here refuses.

What a step changes is in the table of steps; everything else is the same in both versions. Two steps lose something on
the way, as upstream's do: 3.4 → 3.5 drops the advertisement of tang servers, 3.5 → 3.6 masks the mode bits that older
versions never applied. Source: coreos/ignition ``config/v3_*/translate/translate.go``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from syncline.ignition.schema import version_text
from syncline.ignition.typed import canonical

Value: TypeAlias = "dict[str, Any]"


def lift(config: Value, minor: int, target: int) -> Value:
    """A canonical configuration of 3.``minor`` as 3.``target``; ``target`` must not be older."""
    assert minor <= target, f"3.{minor} cannot be lifted to 3.{target}"
    if minor == target:
        return config
    lifted = copy.deepcopy(config)
    for step in range(minor, target):
        _STEPS.get(step, _same)(lifted)
    lifted["ignition"]["version"] = version_text(target)
    return canonical(target, lifted)


def _same(config: Value) -> None:
    """The newer version only knows more."""


def _volumes(config: Value) -> Iterator[Value]:
    yield from config.get("storage", {}).get("luks", ())


def _nullable_texts(config: Value) -> None:
    """3.3 tells an empty level of an array from a missing one; what was there stays, also empty."""
    for volume in _volumes(config):
        clevis = volume.get("clevis")
        if clevis is not None and clevis.get("custom") is not None:
            clevis["custom"].setdefault("config", "")
            clevis["custom"].setdefault("pin", "")


def _without_advertisement(config: Value) -> None:
    for volume in _volumes(config):
        for server in (volume.get("clevis") or {}).get("tang", ()):
            server.pop("advertisement", None)


def modes_masked(config: Value) -> None:
    """Files and directories without setuid, setgid and sticky bit."""
    storage = config.get("storage", {})
    for node in (*storage.get("files", ()), *storage.get("directories", ())):
        if "mode" in node:
            node["mode"] &= ~0o7000


_STEPS: dict[int, Callable[[Value], None]] = {2: _nullable_texts, 4: _without_advertisement, 5: modes_masked}
"""What changes from 3.N to the next version, besides the version itself."""

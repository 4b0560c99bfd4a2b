"""A play: what an AnsibleConfig asks of a node, as a file of its MachineConfig; pure. Entry point: :func:`plays_of`.

An AnsibleConfig becomes a MachineConfig with two files: :data:`PLAY`, which says what to run, and :data:`CONTENT`, the
playbook with its roles and collections. So the rendered config of a pool names Ansible's part too, and pools, Holds,
drains and rehearsals need no other target of a node.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj, dig

ROOT = "/etc/syncline/ansible"
"""Folder on a node with a folder for each AnsibleConfig. Only the agent acts on it: no policy is asked."""
PLAY, CONTENT = "play.json", "content.tar.gz"
NONE, DRAIN, REBOOT, AS_TASKS_SAY = "None", "Drain", "Reboot", "AsTasksSay"
DRAIN_TAG, REBOOT_TAG = "syncline.drain", "syncline.reboot"
"""Tags of tasks whose change needs a drained node, or a reboot after the run."""
_WEIGHT = (NONE, DRAIN, REBOOT)


@dataclass(frozen=True)
class Play:
    """One AnsibleConfig on a node. ``content``: SHA-256 of its packed files; the commit is left out, since most commits
    change nothing here. ``disruption``: None, Drain or Reboot. ``secrets``: namespace and name of Secrets; ``vault``:
    namespace, name, key, or empty. Times in seconds; ``check_s`` 0: no checks. ``outcome``: how simulated machines
    fare, else empty."""

    name: str
    content: str
    playbook: str = ""
    role: str = ""
    variables: Mapping[str, Any] | None = None
    secrets: tuple[tuple[str, str], ...] = ()
    vault: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    disruption: str = NONE
    check_s: float = 0.0
    timeout_s: float = 1800.0
    outcome: str = ""

    @cached_property
    def digest(self) -> str:
        """Return the digest of all that the result of a run depends on; a node runs each once."""
        parts = asdict(self)
        for free in ("disruption", "check_s", "timeout_s", "outcome"):
            del parts[free]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def what(self) -> str:
        """Return what is run, for people."""
        return self.playbook or f"role {self.role}"

    @property
    def text(self) -> str:
        """Return the content of :data:`PLAY`."""
        return json.dumps(asdict(self), sort_keys=True, indent=1) + "\n"


def read_play(text: bytes) -> Play:
    """Return a play from its file. Raises ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    for key in ("tags", "skip_tags", "groups", "vault"):
        found[key] = tuple(str(each) for each in found.get(key) or ())
    found["secrets"] = tuple((str(one), str(other)) for one, other in found.get("secrets") or ())
    try:
        return Play(**found)
    except TypeError as error:
        raise ValueError(str(error)) from None


def is_of_plays(path: str) -> bool:
    """Return whether a file belongs to a play: such files have no effect of their own on the node."""
    return path.startswith(f"{ROOT}/")


def plays_of(config: Obj | None) -> tuple[Play, ...]:
    """Return the plays of a MachineConfig by name. Raises ValueError for one that cannot be read."""
    found = []
    for file in _files(config):
        path = str(file.get("path") or "")
        if is_of_plays(path) and posixpath.basename(path) == PLAY:
            try:
                found.append(read_play(_content(file)))
            except ValueError as error:
                raise ValueError(f"{path} is no play: {error}") from None
    return tuple(sorted(found, key=lambda play: play.name))


def content_of(config: Obj | None, play: Play) -> bytes:
    """Return the packed content of a play. Raises ValueError if it is missing or not what the play names."""
    path = f"{ROOT}/{play.name}/{CONTENT}"
    packed = next((_content(file) for file in _files(config) if file.get("path") == path), b"")
    if hashlib.sha256(packed).hexdigest() != play.content:
        raise ValueError(f"{path} is missing, or its SHA-256 is not {play.content[:12]}…")
    return packed


def heaviest(disruptions: list[str]) -> str:
    """Return the one that disturbs a node most."""
    return max(disruptions, key=_WEIGHT.index, default=NONE)


def _files(config: Obj | None) -> list[Obj]:
    found: list[Obj] = dig(config, "spec", "config", "storage", "files") or []
    return found


def _content(file: Obj) -> bytes:
    contents = file.get("contents") or {}
    try:
        return decode_file_contents(contents.get("source"), contents.get("compression")) or b""
    except PayloadError as error:
        raise ValueError(str(error)) from None

"""Reads the Secrets that plays name, as the node's agent: :func:`read_secrets`.

Values are wrapped and stay in memory until the run gets them. The agent needs the right to read each of them, which an
administrator gives to ``system:nodes`` by name (docs/ansible.md).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeAlias

from syncline.base.secret import Secret
from syncline.kube.client import Request, Response, get
from syncline.kube.errors import Forbidden, NotFound
from syncline.kube.objects import Obj, ResourceInfo
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.ansible.play import Play, plays_of

SECRETS = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)
Secrets: TypeAlias = Callable[[Play], tuple[Secret | None, Secret | None]]
"""Returns the variables of a play as JSON, and its vault password."""


class Asks(Protocol):
    """A step that runs plays of a config."""

    @property
    def config(self) -> Obj: ...

    @property
    def plays(self) -> tuple[str, ...]: ...


def no_secrets(_play: Play) -> tuple[Secret | None, Secret | None]:
    return None, None


def read_secrets(step: Asks) -> Generator[Request, Response, Secrets]:
    """Read what the plays of a step need. Raises UpdateError: absent and forbidden are different sentences."""
    found: dict[str, tuple[Secret | None, Secret | None]] = {}
    for play in plays_of(step.config):
        if play.name in step.plays and (play.secrets or play.vault):
            found[play.name] = yield from _of_play(play)
    return lambda play: found.get(play.name, (None, None))


def _of_play(play: Play) -> Generator[Request, Response, tuple[Secret | None, Secret | None]]:
    variables: dict[str, str] = {}
    for namespace, name in play.secrets:
        variables |= yield from _read(play, "spec.variablesFrom", namespace, name)
    vault = None
    if play.vault:
        namespace, name, key = play.vault
        data = yield from _read(play, "spec.vaultPasswordFrom", namespace, name)
        if key not in data:
            where = f"AnsibleConfig {play.name}: spec.vaultPasswordFrom: Secret {namespace}/{name}"
            raise UpdateError(f"{where} has no key {key}; it has {', '.join(data) or 'none'}")
        vault = Secret(data[key])
    return (Secret(json.dumps(variables)) if variables else None), vault


def _read(play: Play, field: str, namespace: str, name: str) -> Generator[Request, Response, dict[str, str]]:
    where = f"AnsibleConfig {play.name}: {field}: Secret {namespace}/{name}"
    answer = yield get(SECRETS, namespace, name)
    if answer.status == NotFound.code:
        raise UpdateError(f"{where} does not exist; create it")
    if answer.status == Forbidden.code:
        raise UpdateError(f"{where} may not be read by this node; grant group system:nodes to get it by name")
    data: dict[str, Any] = answer.or_raise().get("data") or {}
    try:
        return {str(key): base64.b64decode(str(value)).decode() for key, value in sorted(data.items())}
    except (binascii.Error, ValueError):
        raise UpdateError(f"{where} has a value that is no text; Ansible's variables are text") from None

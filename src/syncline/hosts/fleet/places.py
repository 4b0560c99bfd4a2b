"""The directory of an agent: what it joined, and its credentials; each file is replaced atomically, mode 0600.

``$SYNCLINE_HOME/agents/HOST-PORT/CLUSTER/`` has ``agent.json`` (what was joined), ``bootstrap.kubeconfig`` (from the
line), ``pending.json`` (key and name of a request under way, so that a killed join goes on with it) and
``hub.kubeconfig`` (the agent's own identity). A process holds a lock on the directory while it runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from syncline.assembly.endpoints.private import write_private
from syncline.base.secret import Secret
from syncline.cluster.access.pki import KeyPair, kubeconfig_for
from syncline.fleet.spoke.registration.invitation import Invitation
from syncline.kube.objects import Obj
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig

AGENTS: Final = "agents"
MAX_FILE: Final = 1 << 20


class PlaceError(Exception):
    """The files of an agent cannot be used; the message names the file and the fix."""


@dataclass(frozen=True, slots=True)
class Joining:
    """What an agent joined. ``hub``: the address at the time of joining, which stays the hub's name when it moves;
    ``kubeconfig`` and ``context``: of the agent's own cluster, empty: the pod's."""

    hub: str
    cluster: str
    agent: str
    kubeconfig: str = ""
    context: str = ""
    expires: str = ""
    """When the token of the line ends, or ""."""
    keep: str = ""
    """"secret": its credentials are kept in Secrets of the cluster, too."""
    accepted: str = ""
    """"yes" once the hub accepted the cluster."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A certificate request under way."""

    name: str
    key: Secret


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of one agent."""

    folder: Path

    @property
    def hub_file(self) -> Path:
        return self.folder / "hub.kubeconfig"

    @property
    def bootstrap_file(self) -> Path:
        return self.folder / "bootstrap.kubeconfig"

    # -- what was joined -----------------------------------------------------------------------------------------

    def joining(self) -> Joining | None:
        """Return what was joined; None: nothing yet. Raises PlaceError."""
        fields = self._read("agent.json")
        if fields is None:
            return None
        known = {key: value for key, value in fields.items() if key in Joining.__dataclass_fields__}
        if not all(isinstance(value, str) for value in known.values()):
            raise self._unusable("agent.json")
        try:
            return Joining(**known)
        except TypeError:
            raise self._unusable("agent.json") from None

    def keep_joining(self, joining: Joining) -> None:
        self._write("agent.json", asdict(joining))

    # -- credentials ---------------------------------------------------------------------------------------------

    def keep_invitation(self, invitation: Invitation, cluster: str, proxy_url: str = "") -> None:
        made = kubeconfig_for(server=invitation.server, ca_pem=invitation.ca_pem, token=invitation.token, name="hub")
        self._write("bootstrap.kubeconfig", _reached(made, proxy_url, cluster))

    def bootstrap(self) -> ClusterAccess | None:
        """Return the access of the line; None: there is none. Raises PlaceError."""
        return self._access(self.bootstrap_file)

    def hub(self) -> ClusterAccess | None:
        """Return the agent's own access; None: there is none yet. Raises PlaceError."""
        return self._access(self.hub_file)

    def keep_hub(self, access: ClusterAccess, certificate: str, key: Secret, cluster: str) -> None:
        """Keep the agent's own access: to the server of ``access``, with a certificate."""
        made = kubeconfig_for(
            server=access.server, ca_pem=access.ca_pem, client=KeyPair(certificate, key), name="hub", namespace=cluster
        )
        made = _reached(made, access.proxy_url, cluster)
        if access.tls_server_name:
            made["clusters"][0]["cluster"]["tls-server-name"] = access.tls_server_name
        self._write("hub.kubeconfig", made)

    def keep_text(self, name: str, text: str) -> None:
        """Keep a kubeconfig as it is."""
        write_private(self.folder / name, text)

    def pending(self) -> Pending | None:
        fields = self._read("pending.json")
        if fields is None:
            return None
        name, key = fields.get("name"), fields.get("key")
        return Pending(name, Secret(key)) if isinstance(name, str) and isinstance(key, str) else None

    def keep_pending(self, pending: Pending) -> None:
        self._write("pending.json", {"name": pending.name, "key": pending.key.reveal()})

    def drop_pending(self) -> None:
        (self.folder / "pending.json").unlink(missing_ok=True)

    def drop_hub(self) -> None:
        self.hub_file.unlink(missing_ok=True)

    # -- the directory -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory for this process. Raises PlaceError if another one does."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise PlaceError(f"another process runs the agent of {self.folder}; stop it first") from None
        try:
            yield
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Delete all files of the agent, credentials first, and the directory."""
        for name in ("hub.kubeconfig", "pending.json", "bootstrap.kubeconfig", "agent.json", "lock"):
            (self.folder / name).unlink(missing_ok=True)
        for folder in (self.folder, self.folder.parent):
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            raw = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PlaceError(f"{self.folder / name} cannot be read: {error.strerror}") from error
        try:
            found = json.loads(raw[:MAX_FILE])
        except (ValueError, RecursionError):
            raise self._unusable(name) from None
        if not isinstance(found, dict):
            raise self._unusable(name)
        return found

    def _write(self, name: str, fields: Any) -> None:
        write_private(self.folder / name, json.dumps(fields, indent=1) + "\n")

    def _unusable(self, name: str) -> PlaceError:
        return PlaceError(
            f"{self.folder / name} is not what `syncline join` writes; remove {self.folder} and join again"
        )

    def _access(self, file: Path) -> ClusterAccess | None:
        if not file.exists():
            return None
        try:
            return load_kubeconfig(file)
        except KubeconfigError as error:
            raise PlaceError(str(error)) from error


def place_of(home: Path, server: str, cluster: str) -> Place:
    """Return the directory of the agent of ``cluster`` at a hub."""
    parts = urlsplit(server)
    host = (parts.hostname or "hub").replace(":", "-")
    return Place(home / AGENTS / f"{host}-{parts.port or 443}" / cluster)


def places(home: Path) -> list[tuple[Place, Joining]]:
    """Return everything that was joined, by directory. Raises PlaceError."""
    found = []
    for file in sorted((home / AGENTS).glob("*/*/agent.json")):
        place = Place(file.parent)
        joining = place.joining()
        if joining is not None:
            found.append((place, joining))
    return found


def _reached(kubeconfig: Obj, proxy_url: str, cluster: str) -> Obj:
    """Return the kubeconfig of an agent: through a proxy, in the namespace of its cluster."""
    if proxy_url:
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = proxy_url
    kubeconfig["contexts"][0]["context"]["namespace"] = cluster
    return kubeconfig

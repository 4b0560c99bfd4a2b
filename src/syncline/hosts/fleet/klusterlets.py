"""Runs the agents of Klusterlets in this process: each has a directory, filled from the Secrets of its cluster.

What the hub gives an agent goes into the Secret ``hub-kubeconfig-secret`` in the form of upstream's agents, so that the
agent goes on from there after the process and its disk are gone, and either side's agent can follow the other's.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import shutil
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.secret import Secret
from syncline.fleet.spoke.klusterlet.model import (
    HUB_SECRET,
    AgentState,
    Connection,
    EndAgent,
    KeepCredentials,
    RunAgent,
    Wanted,
)
from syncline.fleet.spoke.registration.controller import RegistrationSettings
from syncline.fleet.spoke.registration.invitation import Invitation, server_problem
from syncline.hosts.fleet.agent import LOOK_S, Agent, Standing, stamp_of
from syncline.hosts.fleet.joining import JoinError
from syncline.hosts.fleet.places import Joining, Place, PlaceError
from syncline.hosts.fleet.secrets import SECRETS, beside_its_files
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig
from syncline.kube.text.names import dns_label
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.yaml.loading import YamlError, dump, load

log = logging.getLogger("syncline.assembly")

KLUSTERLETS: Final = "klusterlets"
"""Directory below ``$SYNCLINE_HOME``."""
AGAIN_S: Final = 15.0
"""Seconds after which an agent that could not join tries again."""
CONNECTIONS: Final = {
    Standing.ACCEPTED: Connection.WORKING,
    Standing.DENIED: Connection.REFUSED,
    Standing.GONE: Connection.REFUSED,
    Standing.REJECTED: Connection.REFUSED,
    Standing.AWAY: Connection.AWAY,
}


class BootstrapError(ValueError):
    """A bootstrap Secret that cannot be used; the message does not quote it."""


@dataclass(slots=True)
class _Run:
    """An agent and its task."""

    wanted: Wanted
    place: Place
    server: str = ""
    said: str = ""
    failed: str = ""
    kept: bool = False
    agent: Agent | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class KlusterletAgents:
    """The agents of the Klusterlets of one cluster; see ``fleet/spoke/klusterlet/model.py``. ``spoke``: access to that
    cluster."""

    def __init__(self, home: Path, spoke: ClusterAccess, clock: Clock) -> None:
        self._home, self._spoke, self._clock = home / KLUSTERLETS, spoke, clock
        self._runs: dict[str, _Run] = {}
        self._wake: Callable[[str], None] = lambda _name: None

    # -- what the controller is shown --------------------------------------------------------------------------------

    def state(self, klusterlet: str) -> AgentState | None:
        run = self._runs.get(klusterlet)
        if run is None:
            return None
        standing = run.agent.standing if run.agent is not None else None
        connection = Connection.JOINING if standing is None else CONNECTIONS[standing]
        if connection is Connection.WORKING and run.said.startswith(Standing.AWAY.value):
            connection = Connection.AWAY
        if run.failed:
            connection = Connection.FAILED
        has = run.place.hub_file.exists()
        return AgentState(run.wanted, connection, run.server, run.failed or run.said, has, run.kept)

    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]:
        self._wake = wake

        def end() -> None:
            for run in self._runs.values():
                run.stop.set()
                if run.task is not None:
                    run.task.cancel()

        return end

    def handlers(self) -> Mapping[type, Handler]:
        return {RunAgent: _Doing(self._run), KeepCredentials: _Doing(self._keep), EndAgent: _Doing(self._end)}

    # -- actions -----------------------------------------------------------------------------------------------------

    def _run(self, action: RunAgent) -> Generator[Request, Response, None]:
        wanted = action.wanted
        before = self._runs.pop(wanted.klusterlet, None)
        if before is not None:
            before.stop.set()
        stored = yield client.get(SECRETS, wanted.namespace, HUB_SECRET)
        if stored.status != 404:
            stored.or_raise()
        run = _Run(wanted, Place(self._home / wanted.klusterlet / wanted.uid))
        self._runs[wanted.klusterlet] = run
        run.task = asyncio.get_running_loop().create_task(
            self._attend(run, stored.obj if stored.ok else None, before), name=f"klusterlet {wanted.klusterlet}"
        )

    def _keep(self, action: KeepCredentials) -> Generator[Request, Response, None]:
        run = self._runs.get(action.klusterlet)
        access = run.place.hub() if run is not None else None
        joining = run.place.joining() if run is not None else None
        if run is None or access is None or joining is None:
            return
        data = secret_data(access, joining)
        found = yield client.get(SECRETS, action.namespace, HUB_SECRET)
        metadata = {"name": HUB_SECRET, "namespace": action.namespace}
        wanted: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        if found.status == 404:
            (yield client.create(SECRETS, wanted)).or_raise()
        elif (found.or_raise().get("data") or {}) != data:
            (yield client.update(SECRETS, {**found.obj, "data": data})).or_raise()
        run.kept = True

    def _end(self, action: EndAgent) -> Generator[Request, Response, None]:
        yield from ()
        run = self._runs.get(action.klusterlet)
        folder = self._home / action.klusterlet
        if run is None or run.task is None or run.task.done():
            self._runs.pop(action.klusterlet, None)
            shutil.rmtree(folder, ignore_errors=True)
            return

        def ended(_task: asyncio.Task[None]) -> None:
            self._runs.pop(action.klusterlet, None)
            shutil.rmtree(folder, ignore_errors=True)
            self._wake(action.klusterlet)

        run.stop.set()
        run.task.add_done_callback(ended)

    # -- an agent ----------------------------------------------------------------------------------------------------

    async def _attend(self, run: _Run, stored: Obj | None, before: _Run | None) -> None:
        """Keep the agent running, and say what changes, until it is stopped."""
        if before is not None and before.task is not None:
            await asyncio.wait((before.task,))
        while not run.stop.is_set():
            try:
                agent = self._prepared(run, stored)
                looking = asyncio.create_task(self._look(run))
                try:
                    await agent.run(run.stop)
                finally:
                    looking.cancel()
            except (JoinError, PlaceError, BootstrapError, ApiError, OSError) as error:
                run.failed = str(error)
                log.warning("klusterlet %s: %s", run.wanted.klusterlet, error)
                self._wake(run.wanted.klusterlet)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.stop.wait(), AGAIN_S)

    def _prepared(self, run: _Run, stored: Obj | None) -> Agent:
        """Fill the directory and return the agent. Raises BootstrapError, PlaceError, OSError."""
        wanted = run.wanted
        kubeconfig = bootstrap_of(wanted.bootstrap)
        invitation, proxy = kubeconfig
        run.server = invitation.server
        names = {key: _text(stored, key) for key in ("cluster-name", "agent-name")}
        cluster = wanted.cluster or names["cluster-name"] or wanted.uid
        if problems := dns_label(cluster):
            raise BootstrapError(f"cluster name {cluster}: {problems[0]}")
        known = run.place.joining()
        joining = Joining(invitation.server, cluster, wanted.uid)
        if known is not None and known.cluster == cluster and known.hub == invitation.server:
            joining = replace(joining, accepted=known.accepted)
        elif known is not None:
            run.place.drop_hub()
        run.place.keep_joining(joining)
        run.place.keep_invitation(invitation, cluster, proxy)
        bootstrap = run.place.bootstrap()
        theirs = stored is not None and names["cluster-name"] == cluster and names["agent-name"] == wanted.uid
        theirs = theirs and stored is not None and same_server(stored, invitation.server)
        if theirs and bootstrap is not None and not run.place.hub_file.exists():
            run.place.keep_hub(bootstrap, _text(stored, "tls.crt"), Secret(_text(stored, "tls.key")), cluster)
            joining = replace(joining, accepted="yes")
            run.place.keep_joining(joining)
        registration = RegistrationSettings(wanted.custom_claims, wanted.reserved_suffixes, wanted.expiration_s)
        run.failed = ""
        run.agent = Agent(
            run.place,
            joining,
            self._spoke,
            self._clock,
            partial(self._say, run),
            registration=registration,
            annotations=dict(wanted.annotations),
        )
        return run.agent

    def _say(self, run: _Run, text: str) -> None:
        log.info("klusterlet %s: %s", run.wanted.klusterlet, text)
        run.said = text
        self._wake(run.wanted.klusterlet)

    async def _look(self, run: _Run) -> None:
        """Wake the controller when the agent's credentials or its standing changed."""
        seen: tuple[object, ...] = ()
        while True:
            standing = run.agent.standing if run.agent is not None else None
            now = (stamp_of(run.place.hub_file), standing)
            if now != seen:
                if seen and now[0] != seen[0]:
                    run.kept = False
                seen = now
                self._wake(run.wanted.klusterlet)
            await asyncio.sleep(LOOK_S)


@dataclass(frozen=True, slots=True)
class _Doing:
    """A handler of one kind of action."""

    do: Callable[[Any], Generator[Request, Response, None]]

    def handle(self, action: Any) -> Generator[Request, Response, None]:
        return self.do(action)


# -- kubeconfigs in Secrets -------------------------------------------------------------------------------------------


def bootstrap_of(kubeconfig: Secret) -> tuple[Invitation, str]:
    """Return what a bootstrap kubeconfig stands for, and its proxy. Only a server, its authority and a token count:
    programs and files that a kubeconfig can name are not run and not read. Raises BootstrapError."""
    try:
        document: Any = load(kubeconfig.reveal().encode(), file="kubeconfig")
    except YamlError:
        raise BootstrapError("the kubeconfig is not YAML") from None
    if not isinstance(document, dict):
        raise BootstrapError("the kubeconfig is not a map")
    context = _named(document, "contexts", str(document.get("current-context") or ""), "context")
    cluster = _named(document, "clusters", str(context.get("cluster") or ""), "cluster")
    user = _named(document, "users", str(context.get("user") or ""), "user")
    server, token = str(cluster.get("server") or ""), str(user.get("token") or "")
    if problem := server_problem(server):
        raise BootstrapError(f"the server of the kubeconfig cannot be used: {problem}")
    if cluster.get("insecure-skip-tls-verify"):
        raise BootstrapError("the kubeconfig does not verify the hub; write its certificate-authority-data")
    if not token:
        raise BootstrapError("the user of the kubeconfig has no token; agents join with that of an account of the hub")
    try:
        ca = base64.b64decode(str(cluster.get("certificate-authority-data") or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        raise BootstrapError("certificate-authority-data of the kubeconfig is not text in base64") from None
    return Invitation(server.rstrip("/"), Secret(token), ca), str(cluster.get("proxy-url") or "")


def secret_data(access: ClusterAccess, joining: Joining) -> dict[str, str]:
    """Return the data of the agent's Secret, as upstream's agents write it: the kubeconfig names the two files."""
    assert access.key_pem is not None, "credentials of agents have a key"
    texts = {
        "kubeconfig": dump(beside_its_files(access)),
        "tls.crt": access.certificate_pem,
        "tls.key": access.key_pem.reveal(),
        "cluster-name": joining.cluster,
        "agent-name": joining.agent,
    }
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def same_server(stored: Obj, server: str) -> bool:
    """Return whether the credentials of a Secret are for this hub."""
    try:
        document: Any = load(_text(stored, "kubeconfig").encode(), file="kubeconfig")
    except YamlError:
        return False
    if not isinstance(document, dict):
        return False
    clusters = document.get("clusters") or ()
    return any(str(dig(one, "cluster", "server") or "").rstrip("/") == server for one in clusters)


def _named(document: Obj, part: str, name: str, inner: str) -> Obj:
    for one in document.get(part) or ():
        if isinstance(one, dict) and one.get("name") == name and isinstance(one.get(inner), dict):
            found: Obj = one[inner]
            return found
    raise BootstrapError(f'the kubeconfig has no {inner} "{name}"')


def _text(stored: Obj | None, key: str) -> str:
    try:
        return base64.b64decode(str(dig(stored, "data", key) or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""

"""The agent of a cluster as a process: :class:`Agent` keeps one cluster connected to one hub until it is stopped.

It only connects outwards. While the hub is away the cluster goes on with what it has; when the hub denies the cluster,
or no longer has it, the agent goes quiet, says so, and asks again from time to time. Its certificate is renewed while
it runs; one that ended is asked for again with the line, if that is still valid.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from syncline.assembly.embedded.install import install_missing
from syncline.assembly.fleet.agent import AgentSettings, running_agent
from syncline.assembly.fleet.objects import spoke_objects
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import LiveDriver
from syncline.assembly.scripts.expressions import Expressions
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.base.secret import Secret
from syncline.control.manager import drive
from syncline.fleet.conditions import is_true
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.spoke.registration.controller import RegistrationSettings
from syncline.fleet.spoke.registration.proposing import with_config
from syncline.fleet.spoke.registration.status import CLOCK_DIFFERS, clock_differs
from syncline.hosts.fleet.joining import CLUSTERS, Backoff, Join, JoinError, Say, own_cluster
from syncline.hosts.fleet.leaving import clean_up, is_marked
from syncline.hosts.fleet.places import Joining, Place, PlaceError
from syncline.hosts.issuing import RenewalError, held_by
from syncline.kube import client
from syncline.kube.certificates import CertificateError, validity_of
from syncline.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig
from syncline.kube.transport.kubeconfig import ClusterAccess

log = logging.getLogger("syncline.assembly")

LOOK_S: Final = 2.0
"""Seconds between two looks at the own ManagedCluster in the cache, and at the files."""
AWAY_S: Final = 30.0
"""The longest wait for a hub that does not answer at the start."""
QUIET_S: Final = 60.0
"""The longest wait between two questions to a hub that denies the cluster, or does not have it."""
REJECTIONS: Final = 3
"""Refusals of the certificate in a row after which another one is asked for; a proxy may refuse one by mistake."""
WORKS: Final = ResourceInfo(
    MANIFEST_WORK.group, MANIFEST_WORK.version, MANIFEST_WORK.kind, "manifestworks", namespaced=True
)


class Standing(StrEnum):
    """How a hub treats the cluster of this agent."""

    ACCEPTED = "the hub accepts the cluster"
    DENIED = "the hub denies the cluster; nothing is done here"
    GONE = (
        "the hub does not have the cluster any more; what was applied stays here, and the hub is asked again from time "
        "to time; `syncline leave` ends that"
    )
    REJECTED = "the hub does not know the agent's certificate"
    AWAY = "the hub does not answer; the cluster goes on with what it has"


QUIET: Final = (Standing.DENIED, Standing.GONE)


@dataclass(slots=True)
class StoredCredentials:
    """The certificate of the agent in its kubeconfig file, in use by a port."""

    file: Path
    access: ClusterAccess
    port: HttpPort

    def certificate(self) -> str:
        return self.access.certificate_pem

    def store(self, certificate: str, key: Secret) -> None:
        try:
            held_by(self.file, self.access.context).replace(certificate, key)
        except RenewalError as error:
            raise OSError(f"{self.file}: {error}") from error
        self.use(replace(self.access, certificate_pem=certificate, key_pem=key))

    def use(self, access: ClusterAccess) -> None:
        self.access = access
        self.port.use(access)


@dataclass(slots=True)
class Agent:
    """One cluster at one hub. ``spoke``: access to the cluster; ``hub_url``: another address of the same hub, kept."""

    place: Place
    joining: Joining
    spoke: ClusterAccess
    clock: Clock
    say: Say
    hub_url: str = ""
    entropy: Entropy = field(default_factory=Entropy)
    registration: RegistrationSettings = field(default_factory=RegistrationSettings)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of the cluster when it is proposed."""
    local_sources: bool = False
    """As of :class:`AgentSettings`."""
    within_s: float | None = None
    """Seconds after which a join gives up; None: never."""
    changed: Callable[[], Awaitable[None]] | None = None
    """Called after the credentials in the directory changed; raises ApiError, which is said."""
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the agent's loop runs."""
    standing: Standing | None = None
    driver: LiveDriver | None = None
    """That of the running loop."""

    async def run(self, stop: asyncio.Event) -> None:
        """Join if that is not done, and run until ``stop``. Raises JoinError, PlaceError, OSError."""
        with self.place.held():
            keeping = asyncio.create_task(self._keep(stop), name=f"agent of {self.joining.cluster}")
            stopping = asyncio.create_task(stop.wait(), name="agent's end")
            try:
                await asyncio.wait((keeping, stopping), return_when=asyncio.FIRST_COMPLETED)
                if keeping.done():
                    keeping.result()
            finally:
                for task in (keeping, stopping):
                    task.cancel()
                await asyncio.gather(keeping, stopping, return_exceptions=True)

    async def join(self) -> None:
        """Join only. Raises JoinError, PlaceError, OSError."""
        with self.place.held():
            await self._joined()

    # -- the states --------------------------------------------------------------------------------------------------

    async def _keep(self, stop: asyncio.Event) -> None:
        away, quiet = Backoff(self.entropy, AWAY_S), Backoff(self.entropy, QUIET_S, QUIET_S)
        rejected = 0
        while not stop.is_set():
            try:
                access = await self._joined()
            except JoinError as error:
                if not self.joining.accepted:
                    raise
                self.say(f"{error}; trying again")
                await asyncio.sleep(quiet.next_s())
                continue
            port = HttpPort(access)
            try:
                credentials = StoredCredentials(self.place.hub_file, access, port)
                standing = await self._look(port)
                self._say_standing(standing)
                if standing is Standing.ACCEPTED:
                    self._note_accepted()
                    await self._serve(credentials, stop)
            finally:
                await port.close()
            if standing is Standing.GONE and is_marked(self.place):
                await clean_up(self.place, self.joining, self.spoke, self.say)
                return
            rejected = rejected + 1 if standing is Standing.REJECTED else 0
            if rejected >= REJECTIONS:
                self._begin_again(Standing.REJECTED)
            elif standing is Standing.ACCEPTED:
                away.reset()
            else:
                await self._rest((quiet if standing in QUIET else away).next_s())

    async def _tell_change(self) -> None:
        try:
            if self.changed is not None:
                await self.changed()
        except ApiError as error:
            self.say(f"the credentials are kept in {self.place.folder}, but not in the cluster: {error}")

    async def _rest(self, seconds: float) -> None:
        """Wait, but not long once the agent is to leave: then the hub is asked often."""
        while seconds > 0:
            await asyncio.sleep(min(seconds, LOOK_S))
            seconds -= LOOK_S if not is_marked(self.place) else seconds

    def _note_accepted(self) -> None:
        if not self.joining.accepted:
            self.joining = replace(self.joining, accepted="yes")
            self.place.keep_joining(self.joining)

    async def _joined(self) -> ClusterAccess:
        """Return the agent's own access, after joining if there is none, or if its certificate ended."""
        access = self._own_access()
        if access is not None and self.hub_url and self.hub_url != access.server:
            access = self._moved(access)
        bootstrap = self.place.bootstrap()
        if access is not None and (self.joining.accepted or bootstrap is None):
            return access
        if bootstrap is None:
            raise JoinError(
                f"there are no credentials in {self.place.folder}; join again with a line of `syncline hub token`"
            )
        if self.hub_url:
            bootstrap = replace(bootstrap, server=self.hub_url)
        own_port = HttpPort(self.spoke)
        try:
            own = await own_cluster(own_port, self.spoke, self.joining.cluster)
        finally:
            await own_port.close()
        settings = self.registration
        join = Join(self.place, self.joining, own, self.clock, self.say, settings.expiration_s, self.annotations)
        join.within_s, join.entropy = self.within_s, self.entropy
        await join.run(bootstrap)
        access = self.place.hub()
        assert access is not None, "a join ends with credentials"
        self._note_accepted()
        await self._tell_change()
        self.say(f"cluster {self.joining.cluster} has joined the hub {access.server}")
        return access

    def _own_access(self) -> ClusterAccess | None:
        access = self.place.hub()
        if access is None:
            return None
        try:
            ends = validity_of(access.certificate_pem).ends
        except CertificateError as error:
            raise PlaceError(
                f"{self.place.hub_file}: {error}; remove the file, and the agent asks for another"
            ) from error
        if ends > self.clock.now():
            return access
        self._begin_again(f"the agent's certificate ended at {ends:%Y-%m-%d %H:%M} UTC")
        return None

    def _begin_again(self, why: str) -> None:
        self.say(f"{why}; asking for another one with the line that it joined with")
        self.place.drop_hub()

    def _moved(self, access: ClusterAccess) -> ClusterAccess:
        """Keep another address of the same hub: its certificate authority decides whether it is the same."""
        assert access.key_pem is not None, "credentials of agents have a key"
        moved = replace(access, server=self.hub_url)
        self.place.keep_hub(moved, access.certificate_pem, access.key_pem, self.joining.cluster)
        return self.place.hub() or moved

    async def _look(self, port: HttpPort) -> Standing:
        name = self.joining.cluster
        found = await port.send(client.get(CLUSTERS, "", name))
        if found.ok:
            accepted = is_true(dig(found.obj, "status", "conditions") or (), ACCEPTED)
            if accepted and dig(found.obj, "spec", "hubAcceptsClient"):
                return Standing.ACCEPTED
            return Standing.DENIED
        error = found.refusal()
        if isinstance(error, Unauthorized):
            return Standing.REJECTED
        if isinstance(error, Forbidden | NotFound):
            works = await port.send(client.list_(WORKS, name, limit=1))
            return Standing.ACCEPTED if works.ok and works.obj.get("items") else Standing.GONE
        log.info("hub %s: %s", self.joining.hub, error)
        return Standing.AWAY

    # -- the running loop --------------------------------------------------------------------------------------------

    async def _serve(self, credentials: StoredCredentials, stop: asyncio.Event) -> None:
        """Run the loop until the hub treats the cluster differently, the certificate ends, or ``stop``."""
        await self._prepare(credentials)
        joining = self.joining
        expressions, journal = Expressions(), Journal(limit=10_000)
        settings = AgentSettings(
            joining.cluster,
            joining.agent,
            joining.hub,
            self.entropy,
            self.registration,
            evaluator=expressions,
            hub_authority=credentials.access.ca_pem,
            local_sources=self.local_sources,
        )
        async with contextlib.AsyncExitStack() as closing:
            closing.callback(expressions.close)
            running = running_agent(settings, credentials.port, self.spoke, HttpPort, self.clock, journal, credentials)
            driver = await closing.enter_async_context(running)
            self.driver = driver
            self.joined.set()
            tasks = [
                asyncio.create_task(driver.run(), name=f"loop of {joining.cluster}"),
                asyncio.create_task(self._attend(driver, credentials), name=f"attendance of {joining.cluster}"),
                asyncio.create_task(stop.wait(), name="agent's end"),
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                self.driver = None
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _prepare(self, credentials: StoredCredentials) -> None:
        """Install what the agent needs on its cluster, and show the hub where the cluster is. Neither must succeed."""
        own = HttpPort(self.spoke)
        try:
            rest = await drive(install_missing(spoke_objects()), own)
            if rest:
                log.warning("the cluster serves no %s", rest[0]["kind"])
            known = await own_cluster(own, self.spoke, self.joining.cluster)
            found = await credentials.port.send(client.get(CLUSTERS, "", self.joining.cluster))
            wanted: Obj | None = with_config(found.obj, known) if found.ok else None
            if wanted is not None:
                (
                    await credentials.port.send(client.update(CLUSTERS, wanted, field_manager="registration-agent"))
                ).or_raise()
        except ApiError as error:
            log.warning("before the agent of %s began: %s", self.joining.cluster, error)
        finally:
            await own.close()

    async def _attend(self, driver: LiveDriver, credentials: StoredCredentials) -> None:
        """Say what changes, use a changed file, and return when the loop must end."""
        cache, name = driver.loop.cache, self.joining.cluster
        ref = ObjectRef(*MANAGED_CLUSTER.group_kind, "", name)
        stamp, said = stamp_of(self.place.hub_file), ""
        while True:
            await asyncio.sleep(LOOK_S)
            if (now_is := stamp_of(self.place.hub_file)) != stamp:
                stamp = now_is
                await self._tell_change()
                with contextlib.suppress(PlaceError):
                    access = self.place.hub()
                    if access is not None and access != credentials.access:
                        credentials.use(access)
            live, known = cache.get(ref), cache.has_synced(MANAGED_CLUSTER.group_kind)
            # What was listed before the rights went may be gone: then the hub has no works for this agent.
            readable = not cache.unread(ObjectRef(*MANIFEST_WORK.group_kind, name, ""))
            works = cache.objects(MANIFEST_WORK.group_kind) if readable else []
            gone = bool(cache.unread(ref)) or (known and live is None)
            denied = live is not None and not dig(live, "spec", "hubAcceptsClient")
            if not works and ((denied and not is_true(dig(live, "status", "conditions") or (), ACCEPTED)) or gone):
                return
            if validity_of(credentials.certificate()).ends <= self.clock.now():
                return
            problem = self._problem(driver, live)
            if problem != said:
                said = problem
                self.say(problem or "the hub answers again, and accepts what the agent writes")

    def _problem(self, driver: LiveDriver, live: Obj | None) -> str:
        signs = [sign for sign in driver.manager.signs.watches.values() if sign.needed]
        if signs and all(sign.trouble for sign in signs):
            return f"{Standing.AWAY} ({signs[0].trouble})"
        if live is not None and not dig(live, "spec", "hubAcceptsClient"):
            return f"the hub denies the cluster; works are left there. {accept_command(self.joining.cluster)} undoes it"
        return CLOCK_DIFFERS if live is not None and clock_differs(live) else ""

    def _say_standing(self, standing: Standing) -> None:
        if standing is not self.standing:
            self.standing = standing
            undo = f"; {accept_command(self.joining.cluster)} there undoes it" if standing is Standing.DENIED else ""
            self.say(f"{self.joining.cluster}: {standing.value}{undo}")


def accept_command(cluster: str) -> str:
    """Return what an administrator of the hub types."""
    return f"`syncline cluster accept {cluster}`"


def stamp_of(file: Path) -> tuple[int, int]:
    """Return what changes with each version of a file; zeros if there is none."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_ino

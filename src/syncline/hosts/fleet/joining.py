"""Joins a cluster to a hub: proposes it, asks for a certificate, waits for both gates, stores the credentials.

Each step can be repeated: a join that was killed goes on where it was. Rules: reference ocm-pull-model §1.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.assembly.ports import HttpPort
from syncline.base.clock import Clock, steady_now, time_or_none
from syncline.base.entropy import Entropy
from syncline.control.manager import Port
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.spoke.registration.certificates import MAX_REQUESTS, is_ours, request
from syncline.fleet.spoke.registration.proposing import ID_CLAIM, Own, Waiting, proposed, refusal, waiting_for
from syncline.fleet.spoke.registration.rotation import REQUESTS
from syncline.hosts.fleet.places import Joining, Pending, Place
from syncline.kube import client
from syncline.kube.certificates import client_key, is_of_key, issued_certificate
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Forbidden, TooManyRequests, Unanswered, Unauthorized
from syncline.kube.kinds.managedclusters import CLUSTER_CLAIM, MANAGED_CLUSTER
from syncline.kube.objects import Obj, ResourceInfo, dig, uid_of
from syncline.kube.transport.kubeconfig import ClusterAccess

CLUSTERS: Final = ResourceInfo(
    MANAGED_CLUSTER.group, MANAGED_CLUSTER.version, MANAGED_CLUSTER.kind, "managedclusters", namespaced=False
)
CLAIMS: Final = ResourceInfo(
    CLUSTER_CLAIM.group, CLUSTER_CLAIM.version, CLUSTER_CLAIM.kind, "clusterclaims", namespaced=False
)
FIRST_S, LONGEST_S = 1.0, 15.0
"""Seconds between two looks at the gates: at first, and after a while."""
AWAY_S: Final = 30.0
"""The longest wait for a hub that does not answer."""
SAY_AGAIN: Final = timedelta(minutes=5)

Say = Callable[[str], None]


class JoinError(Exception):
    """The cluster cannot join; one sentence with the fix."""


def may_pass(error: ApiError) -> bool:
    """Return whether an answer of the hub says nothing about this cluster: it is not ready, or has too many requests,
    as when hundreds of clusters join at once."""
    return not isinstance(error, Unauthorized | Forbidden) and (error.code >= 500 or error.code == TooManyRequests.code)


class Backoff:
    """Waits that grow, each drawn anywhere below its bound, so that many agents do not come at once."""

    def __init__(self, entropy: Entropy, longest_s: float, first_s: float = FIRST_S) -> None:
        self._entropy, self._longest_s, self._first_s = entropy, longest_s, first_s
        self._bound = first_s

    def next_s(self) -> float:
        """Return the next wait, at least a quarter of its bound."""
        bound, self._bound = self._bound, min(self._bound * 1.5, self._longest_s)
        return self._entropy.uniform(bound / 4, bound)

    def reset(self) -> None:
        self._bound = self._first_s


async def own_cluster(spoke: Port | None, access: ClusterAccess | None, name: str) -> Own:
    """Return what identifies the agent's own cluster; what cannot be read stays empty."""
    if spoke is None or access is None:
        return Own(name)
    system = await spoke.send(Request("GET", "/api/v1/namespaces/kube-system"))
    claim = await spoke.send(client.get(CLAIMS, "", ID_CLAIM))
    value = dig(claim.obj, "spec", "value") if claim.ok else ""
    return Own(name, uid_of(system.obj) if system.ok else "", str(value or ""), access.server, access.ca_pem)


@dataclass(slots=True)
class Join:
    """One cluster on its way into a hub. ``say`` prints a line for people."""

    place: Place
    joining: Joining
    own: Own
    clock: Clock
    say: Say
    expiration_s: int = 0
    """The wanted lifetime of the certificate; 0: the hub's."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of the proposed cluster; only an agent's own prefix counts."""
    within_s: float | None = None
    """Seconds after which it gives up; None: never."""
    entropy: Entropy = field(default_factory=Entropy)
    _said: str = ""
    _said_at: datetime | None = None
    _since: datetime | None = None

    async def run(self, bootstrap: ClusterAccess) -> None:
        """Return when credentials are stored and the hub accepts the cluster. Raises JoinError, PlaceError, OSError."""
        port = HttpPort(bootstrap)
        try:
            await self._until_joined(port, bootstrap)
        finally:
            await port.close()

    async def _until_joined(self, port: Port, bootstrap: ClusterAccess) -> None:
        looks, away = Backoff(self.entropy, LONGEST_S), Backoff(self.entropy, AWAY_S)
        began = steady_now(self.clock)
        while True:
            try:
                waiting = await self.step(port, bootstrap)
            except Unanswered as error:
                self._tell(f"the hub does not answer, trying again: {error}")
                wait = away.next_s()
            except ApiError as error:
                if may_pass(error):
                    self._tell(f"the hub is not ready, trying again: {error}")
                    wait = away.next_s()
                else:
                    raise self._refused(bootstrap, error) from error
            else:
                away.reset()
                if waiting is None:
                    return
                self._wait_said(waiting)
                wait = looks.next_s()
            if self.within_s is not None and (steady_now(self.clock) - began).total_seconds() >= self.within_s:
                raise JoinError(f"{self._said}; --timeout is over: `syncline join` again goes on from here")
            await asyncio.sleep(wait)

    async def step(self, port: Port, bootstrap: ClusterAccess) -> Waiting | None:
        """Do what can be done now; return what is missing. Raises JoinError, ApiError, OSError."""
        cluster = await self._proposed(port)
        if self.place.hub() is not None:
            return waiting_for(cluster, None)
        made = await self._requested(port)
        pending = self.place.pending()
        pem, problem = issued_certificate(made)
        if problem or pending is None or (pem and not is_of_key(pem, pending.key)):
            self.place.drop_pending()
            if problem:
                name = dig(made, "metadata", "name")
                raise JoinError(f"the hub refused the certificate request {name}: {problem}; join again to ask again")
            return waiting_for(cluster, made)
        if pem:
            self.place.keep_hub(bootstrap, pem, pending.key, self.joining.cluster)
            self.place.drop_pending()
        return waiting_for(cluster, made)

    async def _proposed(self, port: Port) -> Obj:
        name = self.joining.cluster
        found = await port.send(client.get(CLUSTERS, "", name))
        if found.status == 404:
            found = await port.send(
                client.create(CLUSTERS, proposed(self.own, self.annotations), field_manager="registration-agent")
            )
            if found.status == 409:
                found = await port.send(client.get(CLUSTERS, "", name))
            else:
                found.or_raise()
                self.say(f"cluster {name} is proposed to the hub {self.joining.hub}")
        live: Obj = found.or_raise()
        taken = refusal(live, self.own) if self.place.hub() is None and self.place.pending() is None else ""
        if taken:
            raise JoinError(taken)
        return live

    async def _requested(self, port: Port) -> Obj:
        """Return the certificate request under way; key and name are kept before it is sent."""
        pending = self.place.pending()
        if pending is not None:
            found = await port.send(client.get(REQUESTS, "", pending.name))
            if found.status != 404:
                live: Obj = found.or_raise()
                return live
        cluster, agent = self.joining.cluster, self.joining.agent
        listed: Response = await port.send(client.list_(REQUESTS, label_selector=f"{CLUSTER_NAME}={cluster}"))
        count = sum(is_ours(one, cluster) for one in listed.or_raise().get("items") or ())
        if count >= MAX_REQUESTS:
            raise JoinError(
                f"the hub has {count} certificate requests of cluster {cluster} already, so no further one is made; "
                f"an administrator of the hub approves one or deletes them: kubectl get csr -l {CLUSTER_NAME}={cluster}"
            )
        key = client_key()
        pending = Pending(f"{cluster}-{self.entropy.suffix()}", key)
        self.place.keep_pending(pending)
        wanted = request(cluster, agent, key, self.expiration_s)
        wanted["metadata"] = {"name": pending.name, "labels": wanted["metadata"]["labels"]}
        made = await port.send(client.create(REQUESTS, wanted, field_manager="registration-agent"))
        created: Obj = made.or_raise()
        return created

    # -- what people are shown -----------------------------------------------------------------------------------

    def _wait_said(self, waiting: Waiting) -> None:
        if waiting.what not in self._said:
            self._since = self.clock.now()
        since = f"{self._since:%H:%M:%S}" if self._since is not None else "now"
        until = f"until the line expires at {self.joining.expires}" if self.joining.expires else "without an end"
        self._tell(f"{waiting} (since {since} UTC, {until})")

    def _tell(self, text: str) -> None:
        now = self.clock.now()
        if text != self._said or self._said_at is None or now - self._said_at >= SAY_AGAIN:
            self._said, self._said_at = text, now
            self.say(text)

    def _refused(self, bootstrap: ClusterAccess, error: ApiError) -> JoinError:
        ends = time_or_none(self.joining.expires)
        if isinstance(error, Unauthorized):
            over = (
                f"expired at {self.joining.expires}"
                if ends is not None and ends <= self.clock.now()
                else "is not valid there"
            )
            return JoinError(
                f"the hub {bootstrap.server} does not know the token of the line: it {over}; print a new line on the "
                "hub with `syncline hub token`"
            )
        if error.code == 404:
            return JoinError(f"{bootstrap.server} is no hub: {error}; run `syncline up --hub` there")
        return JoinError(f"the hub {bootstrap.server} refuses to let cluster {self.joining.cluster} join: {error}")

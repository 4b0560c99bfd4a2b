"""Receives webhooks of Git hosts and requests refreshes of the affected Applications and ApplicationSets.

It runs beside a loop: it reads its cache and writes only the refresh annotation, so that the replica that owns an
object does the work. ``argo/webhooks`` interprets the calls.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Iterable, Mapping

from syncline.appset.observing.observe import REFRESH as SET_REFRESH
from syncline.appset.pushes import sets_of_pull_requests, sets_of_pushes
from syncline.appset.questions import Question
from syncline.argo.application import REFRESH
from syncline.argo.webhooks import PullRequestEvent, Push, Received, WebhookRefused, affected, concerns, receive
from syncline.assembly.endpoints.listening import Answer
from syncline.assembly.endpoints.pushes import Touched
from syncline.assembly.sources.hydrating import hydration_asked
from syncline.base.secret import Secret
from syncline.control.cache import Snapshot
from syncline.control.manager import Port
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, ObjectRef, dig

log = logging.getLogger("syncline.assembly")

PATH = "/api/webhook"
"""Upstream's path, so that webhooks registered at Git hosts stay valid."""
MAX_WAITING = 1000
"""Queued calls; a further one gets 503, and the Git host retries."""
AT_ONCE = 4
"""Pushes handled at once."""
SETTINGS_SECRET = "argocd-secret"


class Webhooks:
    """``handle`` is the endpoint; ``work`` runs beside it until cancelled."""

    def __init__(
        self,
        cache: Snapshot,
        port: Port,
        namespace: str,
        serves: Callable[[ObjectRef], bool] = lambda _ref: True,
        touched: Touched | None = None,
        asked: Callable[[], Iterable[Question]] = tuple,
    ) -> None:
        """``serves``: whether the controllers work on an Application or a set; others are ignored. ``touched``: finds
        Applications that a push does not change; None: all are refreshed. ``asked``: the known questions of sets."""
        self._asked = asked
        self._serves = serves
        self._touched = touched
        self._cache = cache
        self._port = port
        self._namespace = namespace
        self._waiting: asyncio.Queue[Received] = asyncio.Queue(MAX_WAITING)
        self.received = 0
        """Number of authentic calls, for metrics."""

    async def handle(self, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            found = receive(headers, body, self._secrets())
        except WebhookRefused as refused:
            log.info("webhook refused: %s", refused)
            return Answer(refused.status, f"{refused}\n")
        self.received += 1
        if found:
            try:
                self._waiting.put_nowait(found)
            except asyncio.QueueFull:
                return Answer(503, "too many webhooks are waiting; try again later\n")
        return Answer(200, "ok\n")

    async def work(self) -> None:
        """Handle queued pushes in parallel, so that a slow host delays those of others only if all slots are taken."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            received = await self._waiting.get()
            if received.pushes:
                await self._pushed(received.pushes)
            elif received.pull is not None:
                await self._proposed(received.pull)

    async def _pushed(self, pushes: tuple[Push, ...]) -> None:
        found = affected(self._cache.objects(APPLICATION.group_kind), pushes)
        served = {ref: app for ref in found if self._serves(ref) and (app := self._cache.get(ref)) is not None}
        alone = await self._touched.left_alone(served.values()) if self._touched is not None else frozenset()
        if alone:
            log.info("push to %s: %d Applications have nothing of it", pushes[0].ref, len(alone))
        why = f"push to {pushes[0].ref}"
        for ref in served:
            if ref not in alone:
                await self._refresh(ref, {REFRESH: "normal", **hydration_asked(served[ref], pushes)}, why)
        for ref in sets_of_pushes(self._cache.objects(APPLICATION_SET.group_kind), pushes, self._asked()):
            if self._serves(ref):
                await self._refresh(ref, {SET_REFRESH: "true"}, why)

    async def _proposed(self, event: PullRequestEvent) -> None:
        sets = self._cache.objects(APPLICATION_SET.group_kind)
        for ref in sets_of_pull_requests(sets, lambda generator: concerns(event, generator)):
            if self._serves(ref):
                await self._refresh(ref, {SET_REFRESH: "true"}, f"pull request of {event.repository}: {event.action}")

    async def _refresh(self, ref: ObjectRef, annotations: Mapping[str, str], why: str) -> None:
        info = self._cache.mapper.preferred(GroupKind(ref.group, ref.kind))
        if info is None:
            return
        body = {"metadata": {"annotations": dict(annotations)}}
        answer = await self._port.send(client.patch(info, ref.namespace, ref.name, PatchType.MERGE, body))
        if answer.ok:
            log.info("refresh of %s asked for: %s", ref, why)
        elif answer.status != 404:
            log.warning("refresh of %s could not be asked for: %s", ref, dig(answer.obj, "message", default=""))

    def _secrets(self) -> dict[str, Secret]:
        found = self._cache.get(ObjectRef("", "Secret", self._namespace, SETTINGS_SECRET))
        values: dict[str, Secret] = {}
        for key, value in (dig(found, "data", default={}) or {}).items():
            if str(key).startswith("webhook."):
                try:
                    values[str(key)] = Secret(base64.b64decode(str(value), validate=True).decode())
                except (binascii.Error, UnicodeDecodeError):
                    values[str(key)] = Secret("\0")  # unreadable: nothing matches it, so nothing passes unchecked
        return {key: value for key, value in values.items() if value.reveal()}

"""What the server reads of repositories: :class:`Content`, which asks the controllers' reader in worker threads.

The reader knows credentials, rules of projects and certificates of the control namespace, as the controllers' does
(``assembly/sources``); in the process of ``syncline up`` it is the same one. Nothing here caches beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from syncline.assembly.sources.credentials import Teacher
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import Clock
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext
from syncline.sources.workers.read_scope import ReadScope, read_scope
from syncline.web.state import State
from syncline.web.wire.status import Code, RpcError

MAX_READS = 8
"""Repositories that are read at once for requests."""
MAX_WAITING = 200
"""Requests that wait for their turn to read; more are refused."""
READ_LIMIT_S = 90.0
"""Seconds that the read of one request may take with all its downloads (upstream: the timeout of its repo-server)."""

T = TypeVar("T")


class Content:
    """Repositories as the Applications of one control namespace may read them."""

    def __init__(self, reader: GitSourceReader, state: State, clock: Clock) -> None:
        self.reader = reader
        self._teacher = Teacher(reader, state.cache, state.namespace)
        self._clock = clock
        self._turns = asyncio.Semaphore(MAX_READS)
        self._waiting = 0

    async def manifests(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Render sources; never raises for what a repository contains: the error is in the result."""
        now = self._clock.now()
        return await self._run(lambda: self.reader.read(sources, revisions, now, context))

    async def ask(self, project: str, url: str, work: Callable[[GitSourceReader], T]) -> T:
        """Run ``work`` in a worker thread, as a reader of ``url`` for ``project``. Raises what it raises, and
        :class:`RpcError` where too many requests wait."""
        now = self._clock.now()

        def run() -> T:
            with read_scope(ReadScope(now, project, url, asked=True, limit_s=READ_LIMIT_S)):
                return work(self.reader)

        return await self._run(run)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= MAX_WAITING:
            raise RpcError(Code.RESOURCE_EXHAUSTED, "too many requests read repositories at once; try again later")
        self._waiting += 1
        try:
            async with self._turns:
                self._teacher.teach()
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1

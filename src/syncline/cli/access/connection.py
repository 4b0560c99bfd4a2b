"""Connections of commands to a cluster: kubeconfig, one HTTP client, blocking calls.

A command is short-lived and sequential, so it uses the client that is fast to import; behind a proxy it uses the other
one, on a private event loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import click
import msgspec

from syncline.base.clock import SystemClock
from syncline.cli.frame.failure import CommandFailed
from syncline.control.executor import run_in_place
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Forbidden, error_from_status
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import GVK, Obj, ResourceInfo
from syncline.kube.rights import missing_right, role_for
from syncline.kube.transport.http import BlockingClient, HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig

T = TypeVar("T")
MACHINE_GROUPS = ("machineconfiguration.openshift.io", "operator.openshift.io")
"""API groups of clusters with machine configuration."""


def state_directory() -> Path:
    """Return the data directory of ``syncline up``: $SYNCLINE_HOME, else the XDG state folder."""
    home = os.environ.get("SYNCLINE_HOME")
    if home:
        return Path(home)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "syncline"


def default_kubeconfig() -> str | None:
    """Return None for $KUBECONFIG, else the file of the last ``syncline up``, else None for kubectl's default."""
    if os.environ.get("KUBECONFIG"):
        return None
    own = state_directory() / "kubeconfig"
    return str(own) if own.exists() else None


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--kubeconfig`` and ``--context``."""
    command = click.option("--context", default=None, help="Context of the kubeconfig.")(command)
    return click.option(
        "--kubeconfig", default=None, help="Kubeconfig [default: $KUBECONFIG, else that of the last `syncline up`]."
    )(command)


def namespaced(about: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds an option for a namespace, ``argocd`` by default, and those of the connection."""
    option = click.option(*names, default="argocd", show_default=True, help=about)
    return lambda command: option(connection_options(command))


class _Proxied:
    """A client that supports proxies, with the interface of :class:`BlockingClient`; slower to import."""

    def __init__(self, access: ClusterAccess) -> None:
        import asyncio  # slow to import, and few clusters are behind a proxy

        self._loop = asyncio.new_event_loop()
        self._client = HttpClient(access)

    def send(self, request: Request) -> Response:
        return self._loop.run_until_complete(self._client.send(request))

    def watch(self, request: Request) -> Iterator[bytes]:
        batches = self._client.watch(request).__aiter__()
        while True:
            try:
                yield from self._loop.run_until_complete(batches.__anext__())
            except StopAsyncIteration:
                return

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


def refused(error: ApiError) -> str:
    """Return the error text; if a right is missing, with the Role to request."""
    right = missing_right(str(error)) if isinstance(error, Forbidden) else None
    return str(error) if right is None else f"{error}; ask for {role_for([right])}"


def _client_of(access: ClusterAccess) -> BlockingClient | _Proxied:
    return _Proxied(access) if access.proxy_url else BlockingClient(access)


class Connection:
    """Blocking access for one command. Use as a context manager."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        try:
            access = load_kubeconfig(kubeconfig or default_kubeconfig(), context)
        except (KubeconfigError, OSError) as error:
            raise CommandFailed(f"{error}; or start a cluster: `syncline up`") from error
        self._begin(access)

    @classmethod
    def to(cls, access: ClusterAccess) -> Connection:
        """Connect to a cluster that no kubeconfig names."""
        made = cls.__new__(cls)
        made._begin(access)
        return made

    def _begin(self, access: ClusterAccess) -> None:
        self.namespace = access.namespace or "default"
        self.server = access.server
        self._access = access
        self._client = _client_of(access)
        self._mapper: Mapper | None = None
        self._clock = SystemClock()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def now(self) -> datetime:
        return self._clock.now()

    def send(self, request: Request) -> Response:
        """Send one request. Raises CommandFailed if the server is unreachable."""
        try:
            return self._client.send(request)
        except ApiError as error:
            raise self.failed(error) from error

    def failed(self, error: ApiError) -> CommandFailed:
        """Return the failure, with the server's name unless the text has it already."""
        text = refused(error)
        return CommandFailed(text if self.server in text else f"{self.server}: {text}")

    def ask(self, request: Request) -> Any:
        """Send a request and return the body. Raises CommandFailed for a refusal."""
        return self.check(self.send(request))

    def check(self, answer: Response) -> Any:
        """Return the body of a response. Raises CommandFailed for a refusal."""
        try:
            return answer.or_raise()
        except ApiError as error:
            raise CommandFailed(refused(error)) from error

    def run(self, steps: Generator[Any, Any, T]) -> T:
        """Run a generator of requests and return its result. Raises CommandFailed for an unhandled refusal."""
        try:
            return run_in_place(steps, self)
        except ApiError as error:
            raise self.failed(error) from error

    @property
    def access(self) -> ClusterAccess:
        return self._access

    @property
    def mapper(self) -> Mapper:
        if self._mapper is None:
            self._mapper = Mapper(self.run(discover()))
        return self._mapper

    def resource(self, gvk: GVK) -> ResourceInfo:
        info = self.mapper.find(gvk)
        if info is None:
            up = "syncline up --machine-config" if gvk.group in MACHINE_GROUPS else "syncline up"
            raise CommandFailed(
                f"{self.server} serves no {gvk.kind} ({gvk.api_version}); is it a cluster that `{up}` started?"
            )
        return info

    def lines(self, request: Request) -> Iterator[str]:
        """Yield the lines of a followed log, on a separate connection, so that several threads may call it. Raises the
        ApiError of a refusal."""
        follower = _client_of(self._access)
        try:
            for line in follower.watch(request):
                yield line.decode("utf-8", "replace")
        finally:
            follower.close()

    def watch(self, request: Request) -> Iterator[Obj]:
        """Yield decoded watch events until the server ends the watch."""
        try:
            for line in self._client.watch(request):
                event = msgspec.json.decode(line)
                if event.get("type") == "ERROR":
                    raise CommandFailed(str(error_from_status(event.get("object"))))
                yield event
        except ApiError as error:
            raise self.failed(error) from error

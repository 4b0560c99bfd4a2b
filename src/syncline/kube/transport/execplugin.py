"""Credential plugins: the ``exec`` of a kubeconfig's user, as EKS, GKE and AKS use it. :class:`Plugins` runs them.

``kubeconfig`` reads an :class:`ExecPlugin`; ``http`` gets credentials from :class:`Plugins`. A program runs only when
no credential is valid, with a time limit; its output is cached until it expires, never written to disk. Source:
client-go ``plugin/pkg/client/auth/exec`` and the ExecCredential API (``client.authentication.k8s.io``).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncline.base.clock import Clock, SystemClock, parse_time
from syncline.base.secret import Secret

if TYPE_CHECKING:
    import subprocess

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
EXEC_INFO = "KUBERNETES_EXEC_INFO"
TIME_LIMIT_S = 60.0
"""For a program that cannot prompt the user; interactive ones get longer."""
INTERACTIVE_LIMIT_S = 600.0
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_REMEMBERED = 1_000
"""The most plugins with cached credentials: one per cluster and user."""


class PluginError(Exception):
    """No credentials; the message says which program of which user failed, how, and what to do."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """One ``exec`` section. ``label`` names its position; ``cluster`` is the JSON passed to the program, or empty."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = API_VERSIONS[0]
    interactive_mode: str = "IfAvailable"
    cluster: str = ""
    install_hint: str = ""
    label: str = ""

    def __repr__(self) -> str:
        return f"ExecPlugin({self.command!r})"  # Arguments and variables may hold secrets.


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, a client certificate with its key, or both; ``expires`` None: valid until the server refuses it."""

    token: Secret | None = None
    certificate_pem: str = ""
    key_pem: Secret | None = None
    expires: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.expires is None or now <= self.expires


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


class Plugins:
    """Caches credentials by plugin for the whole process. Blocks while a program runs: call it in a thread."""

    def __init__(
        self,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        is_terminal: Callable[[], bool] = _is_terminal,
    ) -> None:
        self._clock = clock or SystemClock()
        self._environ = environ
        self._is_terminal = is_terminal
        self._lock = threading.Lock()
        self._locks: dict[ExecPlugin, threading.Lock] = {}
        self._known: dict[ExecPlugin, Credential] = {}

    def known(self, plugin: ExecPlugin) -> Credential | None:
        """Return the cached credential if it is valid; run nothing."""
        found = self._known.get(plugin)
        return found if found is not None and found.holds(self._clock.now()) else None

    def get(self, plugin: ExecPlugin) -> Credential:
        """Return the cached credential, or a new one from the program. Raises :class:`PluginError`."""
        with self._own(plugin):
            return self.known(plugin) or self._ask(plugin)

    def renew(self, plugin: ExecPlugin, refused: Credential) -> Credential:
        """Return a credential other than ``refused``, cached meanwhile or new. Raises :class:`PluginError`."""
        with self._own(plugin):
            found = self._known.get(plugin)
            return found if found is not None and found is not refused else self._ask(plugin)

    def _own(self, plugin: ExecPlugin) -> threading.Lock:
        """The lock of a plugin: ten concurrent requests ask a person for a password once."""
        with self._lock:
            if len(self._locks) >= MAX_REMEMBERED and plugin not in self._locks:
                self._locks.clear()
                self._known.clear()
            return self._locks.setdefault(plugin, threading.Lock())

    def _ask(self, plugin: ExecPlugin) -> Credential:
        interactive = self._interactive(plugin)
        environ = dict(os.environ if self._environ is None else self._environ) | dict(plugin.env)
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.cluster:
            spec["cluster"] = json.loads(plugin.cluster)
        fields = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        environ[EXEC_INFO] = json.dumps(fields)
        made = _credential(plugin, _run(plugin, environ, interactive=interactive))
        self._known[plugin] = made
        return made

    def _interactive(self, plugin: ExecPlugin) -> bool:
        if plugin.interactive_mode == "Never":
            return False
        terminal = self._is_terminal()
        if plugin.interactive_mode == "Always" and not terminal:
            raise PluginError(
                f"{plugin.label}: the exec plugin {plugin.command} asks a person, and standard input is no terminal; "
                "run the command in a terminal, or use credentials without a prompt"
            )
        return terminal


def _run(plugin: ExecPlugin, environ: Mapping[str, str], *, interactive: bool) -> bytes:
    import subprocess  # Most clusters need no plugin, and commands start faster without it.

    program = shutil.which(plugin.command, path=environ.get("PATH"))
    if program is None:
        raise _failed(plugin, f"executable {plugin.command} not found")
    limit = INTERACTIVE_LIMIT_S if interactive else TIME_LIMIT_S
    try:
        process = subprocess.Popen(
            [program, *plugin.args],
            env=dict(environ),
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,  # Its messages are for the user, as in kubectl.
            start_new_session=not interactive,
        )
    except OSError as error:
        raise _failed(plugin, f"executable {plugin.command} cannot be run: {error.strerror}") from error
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process, group=not interactive)

    timer = threading.Timer(limit, stop)
    timer.start()
    assert process.stdout is not None, "it is a pipe"
    try:
        output = process.stdout.read(MAX_OUTPUT_BYTES + 1)
        if len(output) > MAX_OUTPUT_BYTES:
            _kill(process, group=not interactive)
        code = process.wait()
    finally:
        timer.cancel()
        process.stdout.close()
    if late.is_set():
        raise _failed(plugin, f"executable {plugin.command} did not answer within {limit:.0f} seconds")
    if len(output) > MAX_OUTPUT_BYTES:
        raise _failed(plugin, f"executable {plugin.command} wrote more than {MAX_OUTPUT_BYTES} bytes")
    if code != 0:
        raise _failed(plugin, f"executable {plugin.command} failed with exit code {code}")
    return output


def _kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    try:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass  # It ended just now.


def _failed(plugin: ExecPlugin, why: str) -> PluginError:
    hint = f"\n\n{plugin.install_hint}" if plugin.install_hint else ""
    return PluginError(f"{plugin.label}: getting credentials: exec: {why}{hint}")


def _credential(plugin: ExecPlugin, output: bytes) -> Credential:
    """Parse an ExecCredential. Errors never repeat the program's output, which may be secret."""
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        raise _failed(plugin, f"what {plugin.command} wrote to its standard output is no JSON") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _failed(plugin, f"what {plugin.command} wrote is no ExecCredential")
    if answer.get("apiVersion") != plugin.api_version:
        found = str(answer.get("apiVersion"))[:100]
        raise _failed(plugin, f"plugin is configured to use API version {plugin.api_version}, it returned {found}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise _failed(plugin, "plugin didn't return a status field")
    token, certificate, key = (_text(status.get(name)) for name in ("token", "clientCertificateData", "clientKeyData"))
    if not token and not certificate and not key:
        raise _failed(plugin, "plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise _failed(plugin, "plugin returned only certificate or key, not both")
    return Credential(
        Secret(token) if token else None, certificate, Secret(key) if key else None, _expiry(plugin, status)
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _expiry(plugin: ExecPlugin, status: Mapping[str, Any]) -> datetime | None:
    text = status.get("expirationTimestamp")
    if text is None:
        return None
    try:
        return parse_time(str(text))
    except ValueError:
        raise _failed(plugin, "plugin returned an expirationTimestamp that is no time of RFC 3339") from None


def command_of(command: str, folder: Path) -> str:
    """Resolve a command: with a slash relative to the kubeconfig's folder, otherwise in PATH (client-go)."""
    if "/" not in command or command.startswith("/"):
        return command
    return str((folder / command).absolute())

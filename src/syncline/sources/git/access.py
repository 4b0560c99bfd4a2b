"""Passes credentials to one git child process and to no other: :func:`git_environment`.

Called by ``sources/git/mirrors.py`` around each remote call. Passwords and tokens go through the environment of that
child, keys and certificates through files that only this user can read, in memory if possible; both are removed after
the call. Credentials are never arguments, which other users of the machine can read.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from syncline.base.scratch import credentials_folder
from syncline.base.secret import Secret
from syncline.sources.git.process import SSH
from syncline.sources.remote.address import parse_address
from syncline.sources.remote.credentials import RepositoryAccess

# Answers git's question (lines `key=value` up to an empty one) for one origin only: after a redirect to another host
# nothing is given. It neither stores nor forgets anything.
_HELPER = (
    '!f() { test "$1" = get || exit 0; while IFS= read -r line && test -n "$line"; do case "$line" in '
    'protocol=*) p="${line#protocol=}";; host=*) h="${line#host=}";; esac; done; '
    'test "$p://$h" = "$SYNCLINE_GIT_ORIGIN" || exit 0; '
    'test -z "$SYNCLINE_GIT_USERNAME" || printf "username=%s\\n" "$SYNCLINE_GIT_USERNAME"; '
    'printf "password=%s\\n" "$SYNCLINE_GIT_PASSWORD"; }; f'
)


_ANONYMOUS = {
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ALLOW_PROTOCOL": "http:https:ssh",
    "SSH_AUTH_SOCK": "",
}
"""For a read as anybody may: no credentials, keys or rewritten addresses of the administrator's own programs either."""


def out_of_arguments(url: str, access: RepositoryAccess | None) -> tuple[str, RepositoryAccess | None]:
    """Return ``url`` without credentials, so that it may appear in a process list, and the access with those of the
    URL: a password, or a token as user. As in git, the password of a URL overrides all others."""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or "@" not in parts.netloc:
        return url, access
    userinfo, _, place = parts.netloc.rpartition("@")
    user, colon, password = userinfo.partition(":")
    plain = urlunsplit(parts._replace(netloc=place))
    found = access if access is not None else RepositoryAccess(plain)
    if colon or found.password is None:
        found = replace(found, username=unquote(user), password=Secret(unquote(password)))
    return plain, found if found.username else replace(found, username=unquote(user))


def git_options(access: RepositoryAccess | None) -> tuple[str, ...]:
    """Return git's options for one call. Headers and certificates would be repeated after a redirect, so with them
    redirects are not followed; passwords come from the helper, for their own origin only."""
    if access is None or not _is_http(access):
        return ()
    shows = access.bearer_token is not None or (access.force_basic and access.password is not None)
    return ("-c", "http.followRedirects=false") if shows or access.certificate_key is not None else ()


@contextlib.contextmanager
def git_environment(
    access: RepositoryAccess | None, inherited: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the variables to add to the environment of a git child; its files exist until the context ends.

    ``inherited``: the environment they are added to (None: ours); its own git settings stay in force.
    """
    if access is None:
        yield {}
        return
    inherited = {} if access.anonymous else os.environ if inherited is None else inherited
    with contextlib.ExitStack() as closing:
        place = _Place(closing)
        address = parse_address(access.url)
        values = _http(access, place) if _is_http(access) else {} if address.is_local else _ssh(access, place)
        config = _config(_settings(access), inherited)
        own = _ANONYMOUS if access.anonymous and address.host else {}
        yield own | values | config


class _Place:
    """The folder for the files of one call, created with the first of them."""

    def __init__(self, closing: contextlib.ExitStack) -> None:
        self._closing = closing
        self._folder: Path | None = None

    def file(self, name: str, content: str) -> str:
        """Create a file that only this user can read; return its path."""
        if self._folder is None:
            made = tempfile.TemporaryDirectory(prefix="syncline-git-", dir=credentials_folder())
            self._folder = Path(self._closing.enter_context(made))
        place = self._folder / name
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
        return str(place)


def _is_http(access: RepositoryAccess) -> bool:
    return urlsplit(access.url).scheme.lower() in ("http", "https")


def _origin(access: RepositoryAccess) -> str:
    """Return ``https://host:port`` as in git's credential protocol."""
    parts = urlsplit(access.url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}"


def _http(access: RepositoryAccess, place: _Place) -> dict[str, str]:
    values: dict[str, str] = {}
    if access.password is not None:
        values |= {
            "SYNCLINE_GIT_ORIGIN": _origin(access),
            "SYNCLINE_GIT_USERNAME": access.username,
            "SYNCLINE_GIT_PASSWORD": access.password.reveal(),
        }
    if access.insecure:
        values["GIT_SSL_NO_VERIFY"] = "true"
    elif access.ca_pem:
        values["GIT_SSL_CAINFO"] = place.file("ca.pem", access.ca_pem)
    if access.certificate_pem and access.certificate_key is not None:
        values["GIT_SSL_CERT"] = place.file("certificate.pem", access.certificate_pem)
        values["GIT_SSL_KEY"] = place.file("key.pem", access.certificate_key.reveal())
    if access.no_proxy:
        values["no_proxy"] = access.no_proxy
    return values


def _settings(access: RepositoryAccess) -> list[tuple[str, str]]:
    """Return git's settings for this call. An empty helper disables those of the administrator, which would store the
    credentials."""
    if not _is_http(access):
        return []
    pairs: list[tuple[str, str]] = []
    if access.password is not None:
        pairs += [("credential.helper", ""), ("credential.helper", _HELPER)]
    if access.force_basic and access.password is not None and access.bearer_token is None:
        from syncline.sources.remote.web import basic

        header = f"Authorization: {basic(access.username, access.password.reveal())}"
        pairs.append((f"http.{_origin(access)}/.extraHeader", header))
    if access.bearer_token is not None:
        header = f"Authorization: Bearer {access.bearer_token.reveal()}"
        pairs.append((f"http.{_origin(access)}/.extraHeader", header))
    if access.proxy is not None:
        pairs.append(("http.proxy", access.proxy.reveal()))
    return pairs


def _config(pairs: list[tuple[str, str]], inherited: Mapping[str, str]) -> dict[str, str]:
    """Return ``GIT_CONFIG_COUNT`` and its pairs, after the existing ones."""
    if not pairs:
        return {}
    counted = inherited.get("GIT_CONFIG_COUNT", "0")
    first = int(counted) if counted.isdigit() else 0
    values = {"GIT_CONFIG_COUNT": str(first + len(pairs))}
    for number, (key, value) in enumerate(pairs, first):
        values |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return values


def _ssh(access: RepositoryAccess, place: _Place) -> dict[str, str]:
    command = [*SSH]
    if access.anonymous:
        command += ["-F", "none", "-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-oIdentityFile=none"]
    if access.ssh_key is not None:
        key = access.ssh_key.reveal()
        file = place.file("key", key if key.endswith("\n") else key + "\n")
        command += ["-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-i", file]
    if access.insecure:
        command += ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR"]
    elif access.known_hosts is not None:
        hosts = place.file("known_hosts", access.known_hosts)
        command += ["-oStrictHostKeyChecking=yes", f"-oUserKnownHostsFile={hosts}", "-oGlobalKnownHostsFile=/dev/null"]
    return {"GIT_SSH_COMMAND": shlex.join(command), "GIT_SSH_VARIANT": "ssh"}

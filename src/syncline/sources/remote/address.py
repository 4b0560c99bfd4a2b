"""Normalizes addresses of repositories before every comparison, permission or connection: :func:`parse_address`.

It refuses, with one sentence, addresses that have no normal form. ``dial`` is passed to programs; ``key`` is derived
from it and used for comparison. Pure.
"""

from __future__ import annotations

import functools
import ipaddress
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from syncline.sources.errors import Problem, SourceError, mask_credentials

_MAX_URL = 2048
_MAX_HOST = 253
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9_+.-]*::")
_SCP = re.compile(r"(?:([^/:@\s]*)@)?(\[[^\]/@\s]*\]|[^/:@\s\[\]]+):(.*)", re.DOTALL)
_REGISTRY_PORT = re.compile(r"\d{1,5}(?:/|$)")
_PORTS = {"http": 80, "https": 443, "ssh": 22, "oci": 443}
_USER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-F]{2})*")
_PASSWORD = re.compile(r"(?:[!-~])*")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"\d+|0x[0-9a-f]*")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_IN_PATH = "/%:@!$&'()*+,;=~-._"
_HUB = {"index.docker.io": "docker.io", "registry-1.docker.io": "docker.io"}
_GIVE = "give an https, ssh or git@host:path address"


@dataclass(frozen=True, slots=True)
class Address:
    """The normal form of an address. ``scheme`` is empty for a path, or a registry's name."""

    scheme: str
    host: str = ""
    """Empty for a place on this machine."""
    port: int | None = None
    """None: the one of the scheme."""
    user: str = ""
    password: str = ""
    path: str = ""
    query: str = ""
    relative: bool = False
    """``host:path``: git asks for a path below the user's home."""

    @property
    def is_local(self) -> bool:
        return self.scheme in ("", "file")

    @property
    def origin(self) -> str:
        """``https://host:443``, empty for a path on this machine."""
        return "" if self.is_local else f"{self.scheme}://{_bracketed(self.host)}:{self.port or _PORTS[self.scheme]}"

    @property
    def dial(self) -> str:
        """The address for git and our own HTTP."""
        if self.scheme == "":
            return self.path
        if self.scheme == "file":
            return "file://" + quote(self.path, safe=_IN_PATH.replace("%", ""))
        user = self.user + (f":{self.password}" if self.password else "")
        user = f"{user}@" if user else ""
        if self.relative:
            return f"{user}{_bracketed(self.host)}:{self.path}"
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{user}{self.authority}{self.path}{query}"

    @property
    def key(self) -> str:
        """The form for comparison: lower case, without ``.git``, final slash and query, and over HTTP without user."""
        path = self.path.lower() if self.relative or self.is_local else _spelled_out(self.path).lower()
        path = _without_ending(path if self.scheme == "" else path.lstrip("/").removeprefix("~/"))
        if self.scheme == "":
            return _registry_key(path)
        if self.scheme == "file":
            return f"file:///{path}"
        user = f"{self.user}@" if self.user and self.scheme == "ssh" else ""
        authority = _HUB.get(self.authority, self.authority) if self.scheme == "oci" else self.authority
        return f"{self.scheme}://{user}{authority}/{path}".removesuffix("/")

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms that an allowing pattern may match; upstream distinguishes a final slash."""
        found = [self.key]
        if self.path.endswith("/") and self.key.count("/") > 2:
            found.append(f"{self.key}/")
        return tuple(found)

    @property
    def with_query(self) -> str:
        """The form with query, which only an identical pattern allows: wildcards do not extend into a query."""
        return f"{self.key}?{self.query.lower()}" if self.query else self.key

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other spellings of the same address, which a denying pattern may match as well."""
        key = self.key
        if self.scheme == "oci":
            return (key.removeprefix("oci://"), "https://" + key.removeprefix("oci://"))
        if self.scheme == "file":
            return (key.removeprefix("file://"),)
        if self.scheme == "":
            return (f"file://{key}",) if key.startswith("/") else (f"oci://{key}", f"https://{key}")
        return (f"ssh://{key.rpartition('@')[2]}",) if self.user and self.scheme == "ssh" else ()

    @property
    def authority(self) -> str:
        """Host and port, the port only if it is not the scheme's default."""
        return _bracketed(self.host) + (f":{self.port}" if self.port else "")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _without_ending(path: str) -> str:
    return path.rstrip("/").removesuffix(".git").rstrip("/") if path != "/" else path


def _registry_key(path: str) -> str:
    """Normalize names of registries, which may include the default port."""
    host, slash, rest = path.partition("/")
    host = host.removesuffix(":443") if slash else host
    return f"{_HUB.get(host, host)}{slash}{rest}"


@functools.lru_cache(maxsize=8192)
def parse_address(url: str, *, charts: bool = False) -> Address:
    """Return the normal form of ``url``; ``charts``: without a scheme it names a registry, never ``host:path``.

    Raises :class:`SourceError` with the reason if it has none.
    """
    if not url or url.startswith("-") or len(url) > _MAX_URL or any(ord(letter) <= 32 for letter in url):
        raise _refused(url, "is not an address of a repository", _GIVE)
    if any(ord(letter) == 127 or "\x80" <= letter <= "\xa0" or letter in "\u2028\u2029\ufeff" for letter in url):
        raise _refused(url, "holds a control character", _GIVE)
    if "\\" in url:
        raise _refused(url, "holds a backslash, which some hosts read as a slash", "write / between folders")
    if _HELPER.match(url):
        raise _refused(url, "names a transport helper, which could run programs", "give an https or ssh address")
    scheme = _SCHEME.match(url)
    if scheme is not None:
        return _with_scheme(url, scheme[1].lower(), url[scheme.end() :])
    scp = None if charts else _SCP.fullmatch(url)
    if scp is not None and (scp[1] is not None or not _REGISTRY_PORT.match(scp[3])):
        return _scp(url, scp[1] or "", scp[2], scp[3])
    return Address("", path=_local_path(url, url))


def _with_scheme(url: str, scheme: str, rest: str) -> Address:
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            raise _refused(url, f"names the host {host!r} in file://", "write file:///PATH")
        return Address("file", path=_local_path(url, unquote("/" + path)))
    if scheme not in _PORTS:
        raise _refused(url, f"uses {scheme}://", "http, https and ssh are allowed")
    if "#" in rest:
        raise _refused(url, "has a fragment (#), which is never sent", "leave it out")
    before, mark, query = rest.partition("?")
    if mark and scheme not in ("http", "https"):
        raise _refused(url, f"has a query (?), which {scheme}:// does not know", "leave it out")
    authority, slash, path = before.partition("/")
    userinfo, _, place = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    user, password = _ESCAPE.sub(lambda found: found[0].upper(), user), password
    odd = _hidden(userinfo, _CONTROLS) or (scheme == "ssh" and "%" in user)
    if "@" in userinfo or not _USER.fullmatch(user) or not _PASSWORD.fullmatch(password) or odd:
        raise _refused(url, "has a user or password with characters that may not stand there", "write %40 for @")
    if password and scheme not in ("http", "https"):
        raise _refused(url, f"has a password, which {scheme}:// does not know", "put it into a repository Secret")
    if user.startswith("-"):
        raise _refused(url, "has no valid user", "give an address such as ssh://git@host/path")
    host, port = _host_and_port(url, place, scheme)
    normal = _path(url, slash + path, encoded_slash=scheme in ("http", "https"))
    return Address(scheme, host, port, user, password, normal, _query(url, query))


def _scp(url: str, user: str, host: str, path: str) -> Address:
    if not path or any(letter in path for letter in "%?#"):
        raise _refused(url, "has no path, or one of the characters % ? # in it", "give git@host:folder/repository.git")
    if not _USER.fullmatch(user) or user.startswith("-") or path.startswith("-"):
        raise _refused(url, "has no valid user or path", "give an address such as git@host:path")
    normal = _host_and_port(url, host, "ssh")[0]
    return Address("ssh", normal, None, user, "", _resolved(url, path), relative=True)


def _host_and_port(url: str, place: str, scheme: str) -> tuple[str, int | None]:
    if place.startswith("["):
        host, closed, port = place[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise _refused(url, "has no valid host", "give an address such as https://host/path")
        port = port[1:]
    else:
        host, _, port = place.partition(":")
    if port and not (port.isascii() and port.isdigit() and len(port) <= 8 and 0 < int(port) <= 65535):
        raise _refused(url, f"has the port {port[:20]!r}", "a port is a number from 1 to 65535")
    number = int(port) if port else None
    try:
        normal = check_host(host, literal=place.startswith("["))
    except ValueError as error:
        raise _refused(url, f"has no valid host ({error})", "give an address such as https://host/path") from None
    return normal, None if number == _PORTS[scheme] else number


def check_host(host: str, *, literal: bool = False) -> str:
    """Return the normal form of a host name or address. Raises :class:`ValueError` with the reason."""
    if literal or ":" in host:
        if "%" in host:
            raise ValueError("an address with a zone is of one machine only")
        found = ipaddress.IPv6Address(host)
        return str(found.ipv4_mapped or found)
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise ValueError("write it in its ASCII form, xn--...") from None
    host = host.lower().removesuffix(".")
    labels = host.split(".")
    if not host or len(host) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("letters, digits, - and . are allowed")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError("write an IPv4 address as four decimal numbers") from None
    return host


def _path(url: str, path: str, *, encoded_slash: bool) -> str:
    """Unescape unreserved letters, escape others, resolve dot segments, merge doubled slashes."""
    if _BROKEN_ESCAPE.search(path):
        raise _refused(url, "has a % that begins no escape", "write %25 for %")
    if _hidden(path):
        raise _refused(url, "has an escaped control character, backslash or percent sign", "write the path plainly")
    if not encoded_slash and "%2f" in path.lower():
        raise _refused(url, "has an escaped slash", "write the path plainly")
    plain = _ESCAPE.sub(lambda found: _unescaped(found[1]), path)
    plain = quote(plain, safe=_IN_PATH)
    found = _resolved(url, plain)
    if any(one.partition(";")[0] in (".", "..") for one in _spelled_out(found).split("/")):
        raise _refused(url, "has a dot segment behind an escaped slash", "write the path plainly")
    return found


def _unescaped(code: str) -> str:
    letter = chr(int(code, 16))
    return letter if letter in _UNRESERVED else f"%{code.upper()}"


_CONTROLS = frozenset((*range(32), 127))
_HIDING = _CONTROLS | {0x5C, 0x25}


def _hidden(text: str, codes: frozenset[int] = _HIDING) -> bool:
    return any(int(found, 16) in codes for found in _ESCAPE.findall(text))


def _spelled_out(path: str) -> str:
    """Unescape slashes for comparison, since hosts differ in their meaning."""
    return re.sub("/{2,}", "/", re.sub("%2[fF]", "/", path))


def _resolved(url: str, path: str) -> str:
    """Remove dot segments and doubled slashes; a path that climbs above its root is refused."""
    first = "/" if path.startswith("/") else ""
    done: list[str] = []
    segments = path.split("/")
    for number, segment in enumerate(segments):
        if segment.partition(";")[0] in (".", "..") and ";" in segment:
            raise _refused(url, "has a dot segment with parameters", "write the path plainly")
        if segment == ".." and not done:
            raise _refused(url, "leaves its host by '..'", "write the path without '..'")
        if segment == "..":
            done.pop()
        elif segment not in ("", "."):
            done.append(segment)
        elif number == len(segments) - 1 and done:
            done[-1] += "/"
    if segments[-1] == ".." and done:
        done[-1] += "/"
    return first + "/".join(part.rstrip("/") for part in done) + ("/" if done and done[-1].endswith("/") else "")


def _local_path(url: str, path: str) -> str:
    if "\0" in path or any(ord(letter) < 32 for letter in path):
        raise _refused(url, "holds a control character", _GIVE)
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal


def _query(url: str, query: str) -> str:
    if _BROKEN_ESCAPE.search(query):
        raise _refused(url, "has a % that begins no escape", "write %25 for %")
    return quote(query, safe="/%:@!$&'()*+,;=~-._?")


def check_url(url: str, *, allow_local: bool) -> None:
    """Refuse addresses that git would read as options, helpers or, unless allowed, files of this machine."""
    address = parse_address(url)
    if address.scheme == "oci" or address.query:
        what = "uses oci://" if address.scheme == "oci" else "has a query (?), which git does not know"
        raise _refused(url, what, "http, https and ssh are allowed, without a query")
    if address.scheme == "" and ":" in address.path.partition("/")[0]:
        raise _refused(url, "is neither a path nor git@host:path", _GIVE)
    if address.is_local and not allow_local:
        raise _refused(url, "is a place on this machine", "allow it with --allow-local-repos, or give a remote address")


def host_of(url: str) -> str:
    """Return the normalized ``host:port``, empty for a path on this machine and for addresses without normal form."""
    try:
        address = parse_address(url)
    except SourceError:
        return ""
    return address.authority


def _refused(url: str, what: str, fix: str) -> SourceError:
    shown = mask_credentials(url[:_MAX_URL])
    shown = "".join(letter if letter.isprintable() else "?" for letter in shown)
    if shown.lower().startswith("oci:"):
        what, fix = f"is not an address of a registry: it {what}", "give oci://HOST/REPOSITORY in lower case"
    message = f"repository {shown} {what}"
    return SourceError(Problem.REFUSED, message, subject=shown, field="spec.source.repoURL", fix=fix)


# -- patterns and prefixes ------------------------------------------------------------------------------------------

_GLOB = frozenset("*?[]{}")
_PATTERN_SCHEME = re.compile(r"([^/:@]*)://(.*)", re.DOTALL)
_PATTERN_SCP = re.compile(r"([^/:@]+@[^/:]+):(?!//)(.*)", re.DOTALL)


@functools.lru_cache(maxsize=8192)
def address_pattern(pattern: str) -> str:
    """Convert a pattern of a project to the form of :attr:`Address.key`, as far as possible."""
    text = pattern.strip()
    if not _GLOB & set(text):
        try:
            return parse_address(text).key
        except SourceError:
            return normalize_url(text)  # as upstream: it matches no address
    text = _ESCAPE.sub(lambda found: "/" if found[1].lower() == "2f" else _unescaped(found[1]), text).lower()
    scp = _PATTERN_SCP.fullmatch(text)
    if scp is not None:
        text = f"ssh://{scp[1]}/{scp[2].lstrip('/')}"
    found = _PATTERN_SCHEME.fullmatch(text)
    if found is not None:
        authority, slash, path = found[2].partition("/")
        user, at, place = authority.rpartition("@")
        default = f":{_PORTS.get(found[1], '')}"
        place = place.removesuffix(default) if len(default) > 1 else place
        place = _HUB.get(place, place) if found[1] == "oci" else place
        text = f"{found[1]}://{user + at if found[1] == 'ssh' else ''}{place}{slash}{path}"
    return "" if _BROKEN_ESCAPE.search(text.split("?", 1)[0]) else _without_ending(text)


@functools.lru_cache(maxsize=8192)
def prefix_key(url: str, *, charts: bool = False) -> str:
    """Return the key prefix for ``url`` of ``repo-creds``, empty if it has none; a final slash stays."""
    text = url.strip()
    if re.fullmatch(r"[^/:@\s]+@[^/:@\s]+", text):
        text = f"ssh://{text}"
    try:
        address = parse_address(text, charts=charts)
    except SourceError:
        return ""
    return f"{address.key}/" if text.endswith("/") else address.key


_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_PLAIN_USER_HOST = re.compile(r"[^/:@]+@[^/:]+:.*")


def normalize_url(url: str) -> str:
    """Implement Argo CD's NormalizeGitURL exactly: for labels of metrics, never for permissions."""
    text = url.strip().lower().removesuffix(".git")
    if _SCHEME.match(text) is None and _PLAIN_USER_HOST.fullmatch(text):
        text = "ssh://" + text.replace(":", "/", 1)
    if text.startswith(":") or _PERCENT.search(text.split("?", 1)[0]):
        return ""
    if text.startswith("ssh://"):
        return text.removeprefix("ssh://")
    return text


# -- places that no repository may name -----------------------------------------------------------------------------

_FORBIDDEN = (
    *("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "100.100.100.200/32", "168.63.129.16/32"),
    *("::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128"),
)
"""Of this link, of many hosts at once, and where clouds tell machines their credentials."""
_FORBIDDEN_NAMES = ("metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal")
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def parse_networks(given: Iterable[str]) -> Networks:
    """Parse network addresses; raises :class:`ValueError` for invalid ones."""
    return tuple(ipaddress.ip_network(one.strip(), strict=False) for one in given if one.strip())


DEFAULT_NETWORKS = parse_networks(_FORBIDDEN)


def is_forbidden(host: str, networks: Networks) -> bool:
    """Return True if a host, by its normal form or its resolved address, is in a forbidden network."""
    if host in _FORBIDDEN_NAMES:
        return bool(networks)
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None) or found
    nat64 = ipaddress.IPv6Network("64:ff9b::/96")
    if isinstance(mapped, ipaddress.IPv6Address) and mapped in nat64:
        mapped = ipaddress.IPv4Address(int(mapped) & 0xFFFFFFFF)
    return any(mapped in network for network in networks if network.version == mapped.version)

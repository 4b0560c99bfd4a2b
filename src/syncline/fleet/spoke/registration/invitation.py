"""The line with which a cluster joins a hub: address, trust and token as one word; pure.

``syncline hub token`` prints it, ``syncline join`` reads it. It is a secret: its holder may propose
clusters.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from syncline.base.secret import Secret

MARK: Final = "syncline1."
"""What a line begins with; the number counts forms."""
MAX_LINE: Final = 65536
MAX_CONTENT: Final = 1 << 20
_COMMAND: Final = ("syncline", "join")


class InvitationError(ValueError):
    """A text that is no such line; the message does not quote it."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """Where a hub is and how to ask it for a certificate. ``expires``: when the token ends, RFC 3339, or ""."""

    server: str
    token: Secret
    ca_pem: str = ""
    expires: str = ""

    def line(self) -> str:
        """Return the line. It holds the token in the clear."""
        fields = {"server": self.server, "token": self.token.reveal(), "ca": self.ca_pem, "expires": self.expires}
        content = zlib.compress(json.dumps(fields, separators=(",", ":")).encode(), 9)
        checked = content + zlib.crc32(content).to_bytes(4, "big")
        return MARK + base64.urlsafe_b64encode(checked).decode().rstrip("=")


def read_invitation(text: str) -> Invitation:
    """Read a line; also within the command that it was given in, and broken over lines. Raises InvitationError."""
    words = text.replace("'", " ").replace('"', " ").split()
    line = "".join(words[2:] if tuple(words[:2]) == _COMMAND else words)
    if not line.startswith(MARK) or len(line) > MAX_LINE:
        raise InvitationError(
            f"this is no line to join with: it begins with {MARK}…, as `syncline hub token` on the hub prints it"
        )
    fields = _content(line.removeprefix(MARK))
    server, token, ca, expires = (fields.get(key) for key in ("server", "token", "ca", "expires"))
    if not (isinstance(server, str) and isinstance(token, str) and isinstance(ca, str) and isinstance(expires, str)):
        raise InvitationError("the line lacks server or token; print a new one with `syncline hub token`")
    problem = server_problem(server)
    if problem:
        raise InvitationError(f"the line has an address of a hub that cannot be used: {problem}")
    if not token:
        raise InvitationError("the line has no token; print a new one with `syncline hub token`")
    return Invitation(server.rstrip("/"), Secret(token), ca, expires)


def server_problem(server: str) -> str:
    """Return why an address of a hub cannot be used, or ""."""
    try:
        parts = urlsplit(server)
        valid = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in server):
        return "write https://HOST:PORT"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "an address has no user, query or fragment; write https://HOST:PORT"
    return ""


def _content(text: str) -> dict[str, object]:
    broken = InvitationError(
        "the line is damaged or cut off; copy it whole, or print a new one with `syncline hub token`"
    )
    try:
        checked = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise broken from None
    content, check = checked[:-4], checked[-4:]
    if zlib.crc32(content).to_bytes(4, "big") != check:
        raise broken
    inflating = zlib.decompressobj()
    try:
        found = json.loads(inflating.decompress(content, MAX_CONTENT))
    except (zlib.error, ValueError, RecursionError):
        raise broken from None
    if not isinstance(found, dict):
        raise broken
    return found

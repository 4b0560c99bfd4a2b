"""Takes the values of Secrets out of what containers say of themselves.

Called before a log line or a last message of a container is repeated. Pure. A program that prints its password does so
in its own log, for those who may read that; an explanation goes into tickets and chats.
"""

from __future__ import annotations

import base64
import binascii

from syncline.explain.view import View
from syncline.kube.objects import GroupKind, dig

__all__ = ["masked"]

SECRET = GroupKind("", "Secret")
LEAST = 6
"""Characters from which on a value is taken out: shorter ones stand in any text, and are no secrets."""
MASK = "***"


def masked(view: View, namespace: str, text: str) -> str:
    """``text`` without the values of the namespace's Secrets, plain or in base64, whole or one of their lines."""
    found: set[str] = set()
    for secret in view.cluster.objects(SECRET, namespace):
        for value in (dig(secret, "data", default={}) or {}).values():
            found |= _spellings(str(value))
    for spelling in sorted(found, key=len, reverse=True):
        text = text.replace(spelling, MASK)
    return text


def _spellings(encoded: str) -> set[str]:
    try:
        plain = base64.b64decode(encoded, validate=True).decode("utf-8", "ignore")
    except binascii.Error:
        plain = ""
    parts = {encoded.strip(), plain.strip(), *(line.strip() for line in plain.splitlines())}
    return {part for part in parts if len(part) >= LEAST}

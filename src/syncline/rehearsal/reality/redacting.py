"""Objects without what must not leave the cluster; pure. Entry point: :class:`Redaction`.

Values of Secrets become digests with a salt that is kept nowhere. In all other objects texts lose what looks like a
credential: by their field's or variable's name, by their form, and in files of machine configs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from syncline.base.journal import Entry
from syncline.base.masking import mask_credentials
from syncline.kube.objects import Obj, annotations_of, meta, ref_of

SECRET, DEFINITION = "Secret", "CustomResourceDefinition"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OURS = ("argocd.argoproj.io/", "syncline.dev/")
"""Annotations of Secrets that are kept: by them a sync knows its own. Others may repeat values."""
MAX_DEPTH = 100
_CREDENTIAL = re.compile(
    r"(?i)[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|credentials?)"
)


@dataclass
class Redaction:
    """``masked`` collects the objects, Secrets aside, that differ from what the cluster holds."""

    salt: bytes
    masked: set[str] = field(default_factory=set)

    def of(self, obj: Obj) -> Obj:
        """Return the object as it may be kept."""
        if obj.get("kind") == SECRET:
            return self._secret(obj)
        if obj.get("kind") == DEFINITION:
            return obj
        found = {key: each if key == "metadata" else self._walked(each, key) for key, each in obj.items()}
        notes = {key: self._note(key, text) for key, text in annotations_of(obj).items()}
        if notes:
            found["metadata"] = {**meta(obj), "annotations": notes}
        if found != obj:
            self.masked.add(str(ref_of(obj)))
        return found

    def entry(self, entry: Entry) -> Entry:
        return Entry(entry.when, entry.who, entry.subject, mask_credentials(entry.what), mask_credentials(entry.why))

    def _secret(self, obj: Obj) -> Obj:
        kept = {key: each for key, each in meta(obj).items() if key not in ("annotations", "managedFields")}
        notes = {key: each for key, each in annotations_of(obj).items() if key.startswith(OURS)}
        kept |= {"annotations": notes} if notes else {}
        data = obj.get("data") or {}
        found = {key: each for key, each in obj.items() if key not in ("data", "stringData", "metadata")}
        return {**found, "metadata": kept, "data": {key: self._data(str(value)) for key, value in data.items()}}

    def _data(self, value: str) -> str:
        return base64.b64encode(self._digest(value).encode()).decode()

    def _digest(self, value: str) -> str:
        return f"digest:{hmac.new(self.salt, value.encode(), hashlib.sha256).hexdigest()[:16]}"

    def _note(self, key: str, text: str) -> str:
        if key != APPLIED:
            return str(self._text(text, key))
        try:
            applied = json.loads(text)
        except (ValueError, RecursionError):
            return mask_credentials(text)
        walked = self._walked(applied, "")
        return text if walked == applied else json.dumps(walked, separators=(",", ":")) + "\n"

    def _walked(self, value: Any, name: str, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._text(value, name)
        if depth > MAX_DEPTH:  # deeper than any kind: nothing of it is kept
            return self._digest(repr(value))
        if isinstance(value, list):
            return [self._walked(each, name, depth + 1) for each in value]
        if not isinstance(value, dict):
            return value
        named = str(value.get("name") or "")  # an environment variable, a parameter of a chart
        return {
            key: self._walked(each, named if key == "value" and named else key, depth + 1)
            for key, each in value.items()
        }

    def _text(self, text: str, name: str) -> str:
        if text and _CREDENTIAL.fullmatch(name):
            return self._digest(text)
        if text.startswith("data:"):
            content = _decoded(text)
            return f"data:,{self._digest(text)}" if mask_credentials(content) != content else text
        return mask_credentials(text)


def _decoded(url: str) -> str:
    head, _, body = url.partition(",")
    try:
        raw = base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        return url
    return raw.decode("utf-8", "replace")

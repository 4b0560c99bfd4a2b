"""Parse and check query parameters and option bodies.

The verbs call it; it returns frozen options and raises the refusals of Kubernetes' ``metainternalversion`` and
``metav1`` validation. It does not read objects.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from syncline.base.remember import remember
from syncline.cluster.resources.routes import flag
from syncline.cluster.validation.engine.integers import MOST_INT64, MOST_UINT64, natural
from syncline.ignition.jsontext import JsonError
from syncline.ignition.jsontext import read as read_as_go
from syncline.kube.errors import ApiError, BadRequest, FieldCause, invalid
from syncline.kube.objects import Obj, dig
from syncline.kube.selectors import (
    EVERY_FIELD,
    EVERYTHING,
    FieldSelector,
    Selector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

META = "meta.k8s.io"
MAX_TIMEOUT_S = 3600
"""Longest watch in seconds; Kubernetes ends a watch after 30 to 60 minutes too (``--min-request-timeout``)."""


_BASE64URL = frozenset(string.ascii_letters + string.digits + "-_")


def go_words(raw: bytes, error: Exception) -> str:
    """Return Go's error message for bytes that are not JSON."""
    try:
        read_as_go(raw)
    except JsonError as found:
        return found.older[0]
    return str(error)


def _bad_token(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid{why}")


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """Position in a chunked list: the revision it shows, the last key returned, and the number of objects left."""

    revision: int
    after: tuple[str, str]
    left: int

    def encode(self) -> str:
        start = "/".join(part for part in self.after if part)
        raw = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start, "left": self.left})
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> ContinueToken:
        """Raises BadRequest in the words of apiserver ``storage.DecodeContinue``. A valid token of another server may
        name a revision that this one no longer has."""
        wrong = next((at for at, char in enumerate(text) if char not in _BASE64URL), None)
        if wrong is not None or len(text) % 4 == 1:
            raise _bad_token(f": illegal base64 data at input byte {len(text) - 1 if wrong is None else wrong}")
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        try:
            found = msgspec.json.decode(raw)
        except msgspec.DecodeError as error:
            raise _bad_token(f": {go_words(raw, error)}") from None
        if not isinstance(found, dict):
            raise _bad_token(": json: cannot unmarshal into Go value of type storage.continueToken")
        version = found.get("v", "")
        if version != "meta.k8s.io/v1":
            raise _bad_token(f": server does not recognize this encoded version {version}")
        revision, start = found.get("rv"), found.get("start")
        if type(revision) is not int or not revision or abs(revision) > MOST_INT64:
            raise _bad_token(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        if not isinstance(start, str) or not start:
            raise _bad_token(": encoded start key empty (version meta.k8s.io/v1)")
        namespace, _, name = start.rpartition("/")
        left = found.get("left")
        return cls(revision, (namespace, name), left if isinstance(left, int) else 0)


@dataclass(frozen=True, slots=True)
class ListOptions:
    labels: Selector = EVERYTHING
    fields: FieldSelector = EVERY_FIELD
    limit: int = 0
    token: ContinueToken | None = None
    revision: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int | None = None


_NO_LIST_OPTIONS = ListOptions()


def integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None or text == "":
        return None
    if wrong := no_integer(text):
        raise BadRequest(wrong)
    return int(text)


def no_integer(text: str) -> str:
    """Return Go's error if ``text`` is not a 64-bit integer, else ""."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return f'strconv.ParseInt: parsing "{text}": invalid syntax'
    return "" if natural(digits) is not None else f'strconv.ParseInt: parsing "{text}": value out of range'


def unreadable_revision(text: str) -> str:
    """Return Kubernetes' error if ``text`` is not a resourceVersion, else ""."""
    if not text or natural(text, MOST_UINT64) is not None:
        return ""
    why = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    return f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'


def list_options(
    query: Mapping[str, str], *, watch: bool = False, fits: Callable[[FieldSelector], None] | None = None
) -> ListOptions:
    """Check the parameters of list, watch and deletecollection in Kubernetes' order. ``fits`` refuses field selectors
    that the resource does not support."""
    if not query:
        return _NO_LIST_OPTIONS
    timeout, limit = integer(query, "timeoutSeconds"), integer(query, "limit") or 0
    try:
        labels = parse_label_selector(query.get("labelSelector", ""))
        fields = parse_field_selector(query.get("fieldSelector", ""))
    except SelectorError as error:
        raise BadRequest(str(error)) from None
    revision = query.get("resourceVersion", "")
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    match = query.get("resourceVersionMatch", "")
    more = query.get("continue", "")
    judge = _watch_causes if watch else _list_causes
    causes = judge(initial, match, more, revision)
    if causes:
        raise invalid("ListOptions", "", causes, META)
    if fits is not None:
        fits(fields)
    token = ContinueToken.decode(more) if more and not watch else None
    if token is not None and revision not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    wrong = unreadable_revision(revision)
    if wrong:
        # Kubernetes returns 500 for a watch here.
        raise (
            ApiError(f"resourceVersion: {wrong}", reason="")
            if watch
            else BadRequest(f"invalid resource version: resourceVersion: {wrong}")
        )
    return ListOptions(
        labels,
        fields,
        max(limit, 0) if revision != "0" else 0,  # The watch cache ignores the limit for resourceVersion 0.
        token,
        revision,
        match,
        flag(query, "allowWatchBookmarks"),
        initial,
        None if timeout is None else min(max(timeout, 0), MAX_TIMEOUT_S),
    )


_MATCH = "resourceVersionMatch"
_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


def _forbidden(field: str, what: str) -> FieldCause:
    return FieldCause("FieldValueForbidden", f"Forbidden: {what}", field)


def _unsupported(field: str, value: str, allowed: list[str]) -> FieldCause:
    listed = ", ".join(f'"{item}"' for item in allowed)
    return FieldCause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def _list_causes(initial: bool | None, match: str, more: str, revision: str) -> list[FieldCause]:
    causes = []
    if match:
        if not revision:
            causes.append(_forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if more:
            causes.append(_forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if match not in (_EXACT, _NOT_OLDER):
            causes.append(_unsupported(_MATCH, match, [_EXACT, _NOT_OLDER, ""]))
        if match == _EXACT and revision == "0":
            causes.append(_forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(initial: bool | None, match: str, more: str, revision: str) -> list[FieldCause]:
    causes = []
    if initial is not None and match != _NOT_OLDER:
        causes.append(_forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to {_NOT_OLDER}"))
    if match:
        if initial is None:
            causes.append(_forbidden(_MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"))
        if match != _NOT_OLDER:
            causes.append(_unsupported(_MATCH, match, [_NOT_OLDER]))
    if more and (match or (initial is None and revision in ("", "0"))):
        # A watch without resourceVersion implies initial events.
        causes.append(_forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    return causes


class Validation:
    """Values of ``fieldValidation``."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of create, update and patch. ``manager`` is never empty: it defaults to the user agent."""

    dry_run: bool
    manager: str
    validation: str
    force: bool = False


MAX_MANAGER_CHARS = 128

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _quoted(text: str) -> str:
    """Return a string as Go's %q prints it."""
    made = (_ESCAPES.get(ord(c)) or (c if c.isprintable() else f"\\x{ord(c):02x}") for c in text)
    return '"' + "".join(made) + '"'


def _dry_run_causes(values: Sequence[str]) -> list[FieldCause]:
    if all(value == "All" for value in values):
        return []
    shown = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return [FieldCause("FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"', "dryRun")]


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _manager_causes(manager: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if manager.isprintable() and len(manager) <= MAX_MANAGER_CHARS and manager.isascii():
        return causes
    if _bytes(manager) > MAX_MANAGER_CHARS:
        what = f"Too long: may not be more than {MAX_MANAGER_CHARS} bytes"
        causes.append(FieldCause("FieldValueTooLong", what, "fieldManager"))
    for at, char in enumerate(manager[: MAX_MANAGER_CHARS + 1]):
        if not char.isprintable():
            where = f"invalid character U+{ord(char):04X} (at position {_bytes(manager[:at])})"
            causes.append(
                FieldCause("FieldValueInvalid", f"Invalid value: {_quoted(manager)}: {where}", "fieldManager")
            )
    return causes


def write_options(
    query: Mapping[str, str], headers: Mapping[str, str], kind: str, *, apply: bool = False
) -> WriteOptions:
    """``kind`` is CreateOptions, UpdateOptions or PatchOptions, named in refusals."""
    dry_run = [query["dryRun"]] if "dryRun" in query else []
    manager = query.get("fieldManager", "")
    validation = query.get("fieldValidation", "")
    causes = []
    if apply and not manager:
        causes.append(FieldCause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if not apply and kind == "PatchOptions" and "force" in query:
        causes.append(_forbidden("force", "may not be specified for non-apply patch"))
    causes += _manager_causes(manager) + _dry_run_causes(dry_run)
    if validation not in ("", Validation.STRICT, Validation.WARN, Validation.IGNORE):
        causes.append(_unsupported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if causes:
        raise invalid(kind, "", causes, META)
    agent = manager or _manager_of(headers.get("user-agent", "")) or "unknown"
    return WriteOptions(bool(dry_run), agent, validation or Validation.WARN, flag(query, "force") if query else False)


@remember(1024)
def _manager_of(agent: str) -> str:
    """Return the part before the slash, printable and truncated (apiserver ``prefixFromUserAgent``)."""
    kept, size = "", 0
    for char in agent.partition("/")[0]:
        if not char.isprintable():
            continue
        size += len(char.encode())
        if size > MAX_MANAGER_CHARS:
            break
        kept += char
    return kept


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """``propagation`` is Foreground, Background, Orphan, or empty for the kind's default."""

    dry_run: bool = False
    grace_s: int | None = None
    uid: str | None = None
    revision: str | None = None
    propagation: str = ""
    orphan: bool | None = None


_POLICIES = ("Foreground", "Background", "Orphan")


def delete_options(query: Mapping[str, str], body: Obj | None) -> DeleteOptions:
    """Read the options from the body, which fits its schema, or else the query (as the endpoint installer does)."""
    if body is None and not query:
        return DeleteOptions()
    dry_run: Sequence[str]
    if body is not None:
        dry_run, grace = body.get("dryRun") or (), body.get("gracePeriodSeconds")
        policy, orphan = body.get("propagationPolicy"), body.get("orphanDependents")
    else:
        dry_run, grace = [query["dryRun"]] if "dryRun" in query else (), integer(query, "gracePeriodSeconds")
        policy = query.get("propagationPolicy")
        orphan = flag(query, "orphanDependents") if "orphanDependents" in query else None
    causes = []
    if policy is not None and orphan is not None:
        what = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(FieldCause("FieldValueInvalid", what, "propagationPolicy"))
    if policy is not None and policy not in _POLICIES:
        causes.append(_unsupported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    causes += _dry_run_causes(dry_run)
    if causes:
        raise invalid("DeleteOptions", "", causes, META)
    uid, revision = dig(body, "preconditions", "uid"), dig(body, "preconditions", "resourceVersion")
    return DeleteOptions(bool(dry_run), grace, uid, revision, policy or "", orphan)

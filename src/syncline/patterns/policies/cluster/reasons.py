"""What an evaluation found, in upstream's words: events of objects, in batches, become one message; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

EXISTS: Final = "Resource found as expected"
CREATED: Final = "K8s creation success"
UPDATED: Final = "K8s update success"
DELETED: Final = "K8s deletion success"
NO_MATCH: Final = "Resource found but does not match"
MISSING: Final = "Resource not found but should exist"
UNWANTED: Final = "Resource found but should not exist"
ABSENT: Final = "Resource not found as expected"
CLEANUP_ERROR: Final = "Error cleaning up child objects"
TEMPLATE_ERROR: Final = "Error processing template"
UPDATE_ERROR: Final = "K8s update template error"
CREATION_ERROR: Final = "K8s creation error"
DELETION_ERROR: Final = "K8s deletion error"
DECODE_ERROR: Final = "K8s decode object definition error"


class _Words(NamedTuple):
    reason: str
    message: str


_WORDS: Final[Mapping[str, _Words]] = {
    EXISTS: _Words("K8s `must have` object already exists", "{} found as specified"),
    CREATED: _Words(CREATED, "{} was created successfully"),
    UPDATED: _Words(UPDATED, "{} was updated successfully"),
    DELETED: _Words(DELETED, "{} was deleted successfully"),
    MISSING: _Words("K8s does not have a `must have` object", "{} not found"),
    NO_MATCH: _Words("K8s does not have a `must have` object", "{} found but not as specified"),
    ABSENT: _Words("K8s `must not have` object already missing", "{} missing as expected"),
    UNWANTED: _Words("K8s has a `must not have` object", "{} found"),
}
"""By reason: the reason and the message of the condition, in the order of messages."""


@dataclass(frozen=True, slots=True)
class Event:
    """What was found, or done, at one moment. ``message`` only where the reason says nothing by itself."""

    compliant: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ObjectResult:
    """What was found about the objects ``names`` in a namespace, in order of time."""

    names: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One state of a template: compliance, reason and message of its condition."""

    compliant: bool
    reason: str
    message: str


@dataclass(slots=True)
class _Group:
    names: list[str] = field(default_factory=list)
    keys: dict[str, list[str]] = field(default_factory=dict)


def verdicts_of(results: Mapping[str, ObjectResult], resource: str) -> tuple[Verdict, ...]:
    """Return the states of a template in order of time. ``results`` by NAMESPACE/NAME; ``resource``: the plural.

    What was found and what was done about it are two states; the last one has the last event of every object.
    """
    longest = max((len(one.events) for one in results.values()), default=0)
    made = []
    for at in range(longest):
        batch = {
            key: (one, one.events[at - longest + len(one.events)])
            for key, one in results.items()
            if at >= longest - len(one.events)
        }
        made.append(_verdict(batch, resource))
    return tuple(made)


def _verdict(batch: Mapping[str, tuple[ObjectResult, Event]], resource: str) -> Verdict:
    compliant = all(event.compliant for _, event in batch.values())
    news = {key: one for key, one in batch.items() if one[1].compliant == compliant}
    reasons = {event.reason for _, event in news.values()}
    order = [one for one in _WORDS if one in reasons] + sorted(reasons - _WORDS.keys())
    titles: list[str] = []
    message = ""
    for reason in order:
        same = {key: one for key, one in sorted(news.items()) if one[1].reason == reason}
        title, text = _said(reason, same, resource)
        titles.append(title)
        message = f"{_ended(message)}{text}"
    return Verdict(compliant, "; ".join(titles), message)


def _ended(message: str) -> str:
    return message if not message or message.endswith("; ") else message + "; "


def _said(reason: str, same: Mapping[str, tuple[ObjectResult, Event]], resource: str) -> tuple[str, str]:
    by_names: dict[str, list[str]] = {}
    for key, (result, _) in same.items():
        names = ", ".join(result.names) or key.partition("/")[2]
        by_names.setdefault(names, []).append(key)
    words = _WORDS.get(reason)
    if words is None:
        texts = (same[key][1].message for names in sorted(by_names) for key in by_names[names])
        return reason, "; ".join(texts)
    by_place: dict[str, list[str]] = {}
    for names in sorted(by_names):
        by_place.setdefault(words.message + _place(by_names[names]), []).append(names)
    said = (
        place.replace("{}", resource + (f" [{listed}]" if (listed := ", ".join(sorted(by_place[place]))) else ""), 1)
        for place in sorted(by_place)
    )
    return words.reason, "; ".join(said)


def _place(keys: Iterable[str]) -> str:
    namespaces = sorted({key.partition("/")[0] for key in keys} - {""})
    if not namespaces:
        return ""
    return f" in namespace{'s:' if len(namespaces) > 1 else ''} {', '.join(namespaces)}"


def identifier(names: Sequence[str], namespace: str) -> str:
    """Return ``[a, b] in namespace c``."""
    listed = f"[{', '.join(sorted(names))}]" if names else ""
    return " ".join(filter(None, (listed, f"in namespace {namespace}" if namespace else "")))

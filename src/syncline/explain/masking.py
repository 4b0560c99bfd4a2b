"""Takes the values of Secrets out of what an explanation repeats of containers, Events and the API.

Pure. A program that prints its password does so in its own log, for those who may read that; an explanation goes into
tickets and chats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from syncline.base.cause import Cause
from syncline.base.masking import Masker
from syncline.explain.advice import with_command
from syncline.explain.view import Found, View
from syncline.kube.objects import GroupKind, Obj, ObjectRef
from syncline.kube.secretvalues import secret_masker

__all__ = ["masked", "masked_found"]

SECRET = GroupKind("", "Secret")
REF_PARTS = 4


def masked(view: View, namespace: str, text: str) -> str:
    """``text`` without the values of the namespace's Secrets."""
    return _masker(view, (namespace,))(text)


def masked_found(view: View, found: Found, own: Masker | None = None) -> Found:
    """All that it says, with commands for this cluster and without the values of Secrets of the namespaces that it
    names; ``own`` knows further ones."""
    spaces = sorted({space for cause in _all(found.cause) if (space := _namespace(cause.subject))})
    mask = _masker(view, spaces)

    def said(text: str) -> str:
        return mask(own(text) if own is not None else text)

    def of(cause: Cause) -> Cause:
        return replace(
            cause,
            message=said(cause.message),
            then=said(cause.then),
            next_action=said(with_command(cause.next_action) if view.simulated else cause.next_action),
            evidence=tuple((name, said(value)) for name, value in cause.evidence),
            because=tuple(of(one) for one in cause.because),
        )

    return replace(found, cause=of(found.cause))


def _masker(view: View, namespaces: Iterable[str]) -> Masker:
    def secrets() -> Iterator[Obj]:
        for namespace in namespaces:
            yield from view.cluster.objects(SECRET, namespace)

    return secret_masker(secrets)


def _all(cause: Cause) -> Iterator[Cause]:
    yield cause
    for each in cause.because:
        yield from _all(each)


def _namespace(subject: str) -> str:
    """Of an ObjectRef's text; plain names have none."""
    return ObjectRef.parse(subject).namespace if subject.count("/") == REF_PARTS - 1 and " " not in subject else ""

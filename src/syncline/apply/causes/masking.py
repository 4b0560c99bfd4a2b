"""Removes values of Secrets from text that an explanation quotes: container messages, Events, API errors.

Pure. A program that prints a password prints it for readers of its log only; an explanation is pasted into tickets and
chats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from syncline.apply.causes.advice import with_command
from syncline.apply.causes.view import Found, View
from syncline.base.cause import Cause
from syncline.base.masking import Masker
from syncline.kube.objects import GroupKind, Obj, ObjectRef, labels_of
from syncline.kube.secretvalues import secret_masker

SECRET = GroupKind("", "Secret")
REF_PARTS = 4
CLUSTER_LABEL = "argocd.argoproj.io/secret-type"
"""Label of Argo CD's Secrets; ``cluster``: it is a destination."""


def masked(view: View, namespace: str, text: str) -> str:
    """Return ``text`` with the values of the namespace's Secrets masked."""
    return _masker(view, (namespace,))(text)


def masked_found(view: View, found: Found, own: Masker | None = None) -> Found:
    """Return ``found`` with the commands for this cluster and the values of Secrets masked in all texts. Secrets are
    read from the namespaces that it names; ``own`` masks further values."""
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
            yield from map(_without_names, view.cluster.objects(SECRET, namespace))

    return secret_masker(secrets)


def _without_names(secret: Obj) -> Obj:
    """Return a Secret without what is no secret of it: name and address of a cluster, which every report names."""
    data = secret.get("data")
    if labels_of(secret).get(CLUSTER_LABEL) != "cluster" or not isinstance(data, dict):
        return secret
    return {**secret, "data": {key: value for key, value in data.items() if key not in ("name", "server")}}


def _all(cause: Cause) -> Iterator[Cause]:
    yield cause
    for each in cause.because:
        yield from _all(each)


def _namespace(subject: str) -> str:
    """Return the namespace in the text of an ObjectRef, or an empty string for a plain name."""
    return ObjectRef.parse(subject).namespace if subject.count("/") == REF_PARTS - 1 and " " not in subject else ""

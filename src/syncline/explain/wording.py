"""How a cause is put in words: its subject, and what to do next. Pure."""

from __future__ import annotations

from syncline.base.cause import Cause
from syncline.kube.objects import ObjectRef

_REF_PARTS = 4


def subject_text(subject: str) -> str:
    """Return ``Deployment demo/web`` for ``apps/Deployment/demo/web``; plain names stay."""
    if subject.count("/") != _REF_PARTS - 1 or " " in subject:
        return subject
    ref = ObjectRef.parse(subject)
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def next_step(cause: Cause) -> str:
    """Return the deepest advice along the most important causes; else any."""
    for each in cause.because:
        found = next_step(each)
        if found:
            return found
    return cause.next_action

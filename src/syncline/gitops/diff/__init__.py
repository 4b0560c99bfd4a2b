"""Comparing manifests with live objects. Start at :mod:`syncline.gitops.diff.compare`."""

from syncline.gitops.diff.compare import compare_objects
from syncline.gitops.diff.model import (
    DiffError,
    DiffMode,
    DiffResult,
    DiffSettings,
    IgnoreRule,
    KnownTypeField,
    Override,
)

__all__ = [
    "DiffError",
    "DiffMode",
    "DiffResult",
    "DiffSettings",
    "IgnoreRule",
    "KnownTypeField",
    "Override",
    "compare_objects",
]

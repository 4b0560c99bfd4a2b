"""Comparing manifests with live objects. Start at :mod:`syncline.gitops.diff.compare`."""

from syncline.gitops.diff.compare import compare_objects
from syncline.gitops.diff.hide import hide_secret
from syncline.gitops.diff.jq import Answers, Unknown
from syncline.gitops.diff.model import (
    DiffError,
    DiffMode,
    DiffResult,
    DiffSettings,
    IgnoreRule,
    KnownTypeField,
    Override,
    Prediction,
)
from syncline.gitops.diff.respect import respect_ignored

__all__ = [
    "Answers",
    "DiffError",
    "DiffMode",
    "DiffResult",
    "DiffSettings",
    "IgnoreRule",
    "KnownTypeField",
    "Override",
    "Prediction",
    "Unknown",
    "compare_objects",
    "hide_secret",
    "respect_ignored",
]

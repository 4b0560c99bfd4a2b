"""Compares manifests with live objects. Start at :mod:`syncline.apply.diff.compare`."""

from syncline.apply.diff.compare import compare_objects
from syncline.apply.diff.hide import hide_secret
from syncline.apply.diff.jq import Answers, Unknown
from syncline.apply.diff.model import (
    DiffError,
    DiffMode,
    DiffResult,
    DiffSettings,
    IgnoreRule,
    KnownTypeField,
    Override,
    Prediction,
)
from syncline.apply.diff.respect import respect_ignored

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

"""Calls functions of sprig by name, with a fixed moment and a fixed seed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.gotemplate.sprig.library import sprig_functions

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def call(name: str, *arguments: Any, seed: int = 0) -> Any:
    return sprig_functions(lambda: NOW, Entropy(seed))[name].call(*arguments)


def failure(name: str, *arguments: Any) -> str:
    """Return the text of the error."""
    try:
        result = call(name, *arguments)
    except FunctionError as error:
        return str(error)
    raise AssertionError(f"{name} returned {result!r}")

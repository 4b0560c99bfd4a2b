"""Caches for functions of untrusted texts, bounded in number and in size: :func:`remember`.

``lru_cache`` bounds the number only: four thousand names of three megabytes each are twelve gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import Any, TypeVar, cast

MAX_REMEMBERED_CHARS = 512
"""The longest text that is cached; honest ones are shorter."""

F = TypeVar("F", bound=Callable[..., Any])


def remember(maxsize: int) -> Callable[[F], F]:
    """Return ``lru_cache(maxsize)`` for a function of texts (positional); calls with a long text are not cached."""

    def wrap(function: F) -> F:
        known = lru_cache(maxsize)(function)

        if len(signature(function).parameters) == 1:

            @wraps(function)
            def ask_one(text: Any) -> Any:
                return known(text) if len(text) <= MAX_REMEMBERED_CHARS else function(text)

            return cast(F, ask_one)

        @wraps(function)
        def ask(*texts: Any, **others: Any) -> Any:
            for text in texts:
                if isinstance(text, str | bytes) and len(text) > MAX_REMEMBERED_CHARS:
                    return function(*texts, **others)
            return known(*texts, **others)

        return cast(F, ask)

    return wrap

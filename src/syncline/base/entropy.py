"""The one source of randomness and new ids: :class:`Entropy`.

A world (a live process, a rehearsal, a test) holds one :class:`Entropy`. With a seed it returns the same ids in the
same order; without one the operating system gives the randomness. No other module may import ``random``, ``secrets`` or
``uuid``.
"""

from __future__ import annotations

import random
import secrets
import uuid
from typing import TypeVar

T = TypeVar("T")

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for generated names: no vowels, so no words."""


class Entropy:
    """A random generator; ``seed=None`` uses the operating system's randomness."""

    def __init__(self, seed: int | str | None = None) -> None:
        self._seed = seed
        self._random: random.Random = random.SystemRandom() if seed is None else random.Random(seed)

    def fork(self, name: str) -> Entropy:
        """Return an independent stream for one room, so that a draw in one does not shift the others."""
        return Entropy(None if self._seed is None else f"{self._seed}/{name}")

    def copy(self) -> Entropy:
        """Return a second seeded stream that continues with the same values as this one."""
        twin = Entropy(self._seed)
        twin._random.setstate(self._random.getstate())
        return twin

    def uid(self) -> str:
        """Return a version-4 UUID, as Kubernetes gives to objects."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """Return the random end of a generateName."""
        return "".join(self._random.choice(SUFFIX_ALPHABET) for _ in range(length))

    def token(self, size: int = 32) -> str:
        """Return a secret for credentials, always from the operating system, whatever the seed."""
        return secrets.token_urlsafe(size)

    def key(self) -> bytes:
        """Return 32 bytes for a cryptographic key; with a seed, the same ones in the same order."""
        return self._random.getrandbits(256).to_bytes(32, "big")

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def randrange(self, stop: int) -> int:
        return self._random.randrange(stop)

    def choice(self, items: list[T]) -> T:
        return self._random.choice(items)

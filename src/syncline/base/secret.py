"""A wrapper for credentials that cannot be printed by accident: :class:`Secret`."""

from __future__ import annotations


class Secret:
    """Wraps a credential. ``str``, ``repr`` and formatting show a mask; only :meth:`reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value. Call this only where it is passed to a protocol or a process."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled; pass the name of the Secret object instead")

    def __getstate__(self) -> object:
        return self.__reduce__()

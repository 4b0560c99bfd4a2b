"""Bounds what a rendering spends on keys and passwords: :class:`Budget`."""

from __future__ import annotations

from syncline.kube.gotemplate.functions import FunctionError

MAX_UNITS = 40
"""Units for one map of functions: 10 passwords, 20 certificates, or 2 private keys of 4096 bits; about five seconds."""


class Budget:
    """What is left for expensive calls. Belongs to one map of functions, so to one reconcile."""

    __slots__ = ("_left",)

    def __init__(self, units: int = MAX_UNITS) -> None:
        self._left = units

    def take(self, units: int, name: str) -> None:
        """Raises :class:`FunctionError` if too little is left."""
        if units > self._left:
            raise FunctionError(
                f"{name} needs {units} units of computation and {self._left} of {MAX_UNITS} are left: "
                "make keys, certificates and passwords outside of templates and refer to their Secret"
            )
        self._left -= units

"""Controllers of tests: objects whose methods are the functions of one, so that they can remember what they saw."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from syncline.control.controller import Controller

NAMES = [field.name for field in fields(Controller)]


def controller_of(one: Any) -> Controller[Any]:
    """A controller from the attributes of ``one`` that have the names of its fields."""
    return Controller(**{name: getattr(one, name) for name in NAMES if hasattr(one, name)})

"""Values as Kubernetes' refusals show them: in its internal types, whose fields have the names and the order of Go.

Called by validators for the few refusals that hold a whole structure, or what changed of one. Takes a value as it is
served; out comes JSON with every field of the internal type, or the lines of a unified diff. Nothing is refused here.
"""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from functools import cache
from typing import Any, NamedTuple

from syncline.kube.objects import Obj
from syncline.kube.schema import store

CORE = "io.k8s.api.core.v1"
RBAC = "io.k8s.api.rbac.v1"

MAX_DIFF_LINES = 4000
"""Structures with more lines than this are not compared line by line."""

_FORM = re.compile(r'(?P<marks>[*\[{]*)(?P<base>bbytes|=(?:null|0|"[^"]*")|[Ssbi*])(?P<omit>[?0]?)')
_ZEROS: dict[str, Any] = {"s": "", "b": False, "i": 0, "*": None, "bbytes": None}
_OF_POD = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a pod that the internal type keeps in its security context."""


class _Field(NamedTuple):
    name: str
    source: str
    marks: str
    base: str
    optional: bool
    below: str

    @property
    def zero(self) -> Any:
        if self.marks:
            return None
        if self.base == "S":
            return internal(self.below, {})
        return json.loads(self.base[1:]) if self.base[0] == "=" else _ZEROS[self.base]


@cache
def _fields(definition: str) -> tuple[_Field, ...]:
    fields = []
    for name, source, form, below in store.internal_types().get(definition, ()):
        parts = _FORM.fullmatch(form)
        assert parts is not None, form
        fields.append(_Field(name, source, parts["marks"], parts["base"], bool(parts["omit"]), below))
    return tuple(fields)


def internal(definition: str, value: Any) -> Any:
    """``value``, of a served type, with the names, the order and the empty fields of its internal type."""
    fields = _fields(definition)
    if not fields or not isinstance(value, dict):
        return value
    made: Obj = {}
    if definition == f"{CORE}.PodSpec":
        value = {**value, "securityContext": value.get("securityContext") or {}}
        moved = {name[0].upper() + name[1:]: value[name] for name in _OF_POD if name in value}
    for field in fields:
        given = value.get(field.source) if field.source else None
        shown = field.zero if given is None else _shown(field, field.marks, given)
        if not field.optional or shown:
            made[field.name] = shown
    if definition == f"{CORE}.PodSpec":
        made["SecurityContext"] |= moved
    return made


def _shown(field: _Field, marks: str, value: Any) -> Any:
    if marks[:1] == "[" and isinstance(value, list):
        return [_shown(field, marks[1:], one) for one in value]
    if marks[:1] == "{" and isinstance(value, dict):
        return {key: _shown(field, marks[1:], value[key]) for key in sorted(value)}
    if marks[:1] == "*":
        return _shown(field, marks[1:], value)
    return internal(field.below, value) if field.base == "S" else value


def changed_lines(old: Any, new: Any) -> str:
    """What changed between two structures: a unified diff of their indented JSON, without a head."""
    before, after = (f"{json.dumps(one, indent=1, ensure_ascii=False)}\n".splitlines(True) for one in (old, new))
    if len(before) + len(after) > MAX_DIFF_LINES:
        return ""
    return "".join(list(unified_diff(before, after))[2:])

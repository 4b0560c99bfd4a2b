"""Gives JSON values the form in which Go's types print them: :class:`Printer`.

The same value as writing a message (``writing``) and reading it back (``reading``), without the bytes between: members
without a number vanish, members that Go always prints appear. Values share parts with what they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from syncline.kube.objects import Obj
from syncline.kube.protobuf.fields import META, ZEROS, Field, Messages
from syncline.kube.protobuf.writing import Encoded

Print = Callable[[Any], Any]

_SPECIAL_ZEROS: Mapping[str, Any] = {
    f"{META}.Time": None,
    f"{META}.MicroTime": None,
    f"{META}.Duration": "0s",
    f"{META}.FieldsV1": None,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": None,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "0",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": None,
}
"""What types that print themselves print without a value."""


def _raw(value: Any) -> Any:
    if type(value) is Encoded:
        return msgspec.Raw(value.json)
    raise TypeError(type(value))


class Printer:
    """Prints the messages of ``messages``; the values must be such that they can be written."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._compiled: dict[str, Print] = {}

    def print(self, message: str, value: Any) -> Any:
        """Return the printed form of a message; messages that are kept encoded stay as they are."""
        return self._of(message)(value)

    def json(self, message: str, value: Any) -> bytes:
        """Return the printed form as JSON."""
        return msgspec.json.encode(self._of(message)(value), enc_hook=_raw)

    def _of(self, message: str) -> Print:
        found = self._compiled.get(message)
        if found is None:
            self._compiled[message] = lambda value: self._compiled[message](value)
            found = self._compiled[message] = self._compile(message)
        return found

    def _compile(self, message: str) -> Print:
        if message in _SPECIAL_ZEROS:
            zero = _SPECIAL_ZEROS[message]
            return lambda value: zero if value is None else value
        fields = self._messages.fields(message)
        if self._messages.is_list(message):
            one = self._value(fields[0])
            return lambda value: [one(item) for item in value or ()]
        compiled = [(field, self._member(field)) for field in fields]

        def show(value: Any) -> Any:
            if type(value) is Encoded:
                return value
            made: Obj = {}
            for field, put in compiled:
                put(made, value if field.inline and not field.name else (value or {}).get(field.name))
            return made

        return show

    def _value(self, field: Field) -> Print:
        if field.scalar:
            zero = ZEROS[field.kind]
            return lambda value: zero if value is None else value
        return self._of(field.kind)

    def _member(self, field: Field) -> Callable[[Obj, Any], None]:
        """Return what puts a member into the printed object, by the rules of Go's encoder."""
        one, name = self._value(field), field.name
        if field.inline and not name:
            pointer = field.pointer
            names = [each.name for each in self._messages.fields(field.kind)]

            def put_inline(made: Obj, owner: Any) -> None:
                if not pointer or any((owner or {}).get(each) is not None for each in names):
                    made.update(one(owner))

            return put_inline
        if field.is_map or field.repeated:
            return _collection(field, one)
        omits = field.omit_empty and (field.pointer or field.scalar)
        zero = None if field.pointer else one(None) if field.scalar or field.omit_zero else _NONE

        def put(made: Obj, value: Any) -> None:
            if field.pointer:
                shown = None if value is None else one(value)
            else:
                shown = one(value)
            if (omits and shown == zero) or (field.omit_zero and shown == zero):
                return
            made[name] = None if field.kind == "bytes" and not shown else shown

        return put


_NONE = object()


def _collection(field: Field, one: Print) -> Callable[[Obj, Any], None]:
    def put(made: Obj, value: Any) -> None:
        if not value:
            if not field.omit_empty:
                made[field.name] = None
        elif field.is_map:
            made[field.name] = {key: one(item) for key, item in value.items()}
        else:
            made[field.name] = [one(item) for item in value]

    return put

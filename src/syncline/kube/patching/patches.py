"""JSON patches (RFC 6902) and JSON merge patches (RFC 7396), as the Kubernetes API applies them.

Called by the server's PATCH, by mutating webhooks, by the differ and by kustomize. Documents and patches come in as
JSON values; a new document leaves, sharing with the old one whatever was not touched. Nothing that came in is
changed. Strategic merge patches stand in ``strategic``, patches that are computed from three states in ``threeway``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from syncline.kube.errors import BadRequest, Invalid, TooLarge
from syncline.kube.objects import Obj

MAX_OPERATIONS = 10_000
"""Operations in one JSON patch (apiserver, ``maxJSONPatchOperations``)."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Bytes of what ``copy`` copies in one patch (apiserver ``JSONPatchMaxCopyBytes``)."""

MAX_DEPTH = 200
"""Nesting of a patch. Kubernetes' own types are less than 30 deep; recursion below stays far from its limit."""

_INDEX = re.compile(r"[+-]?[0-9]{1,9}")

_OPERATIONS = frozenset({"add", "remove", "replace", "move", "copy", "test"})


class _Refused(Exception):
    """An operation that does not apply to the document; the text says which and why."""


def json_patch(doc: Any, operations: Any) -> Any:
    """Apply all operations or none.

    Negative indices count from the end, ``add`` creates no parents, a missing field can be replaced, and reads as null
    for test, copy and move (evanphx/json-patch v4, which the API server uses). Raises BadRequest if the patch is no
    list of operations, TooLarge for too many, and Invalid in the API server's words if an operation does not apply.
    """
    steps = _operations(operations)
    patching = _Patching(doc)
    try:
        for step in steps:
            patching.operate(step)
        # Operations can nest what each of them alone does not.
        if any(step.get("op") == "copy" or str(step.get("path")).count("/") > MAX_DEPTH // 4 for step in steps):
            check_depth(patching.doc)
    except (_Refused, RecursionError) as error:
        raise _unprocessable() from error
    return patching.doc


def _unprocessable() -> Invalid:
    """422 with the API server's generic text: it keeps the reason of a failed operation to itself."""
    return Invalid("the server rejected our request due to an error in our request", details={})


def _operations(operations: Any) -> list[Obj]:
    if not isinstance(operations, list) or not all(isinstance(step, dict) for step in operations):
        raise BadRequest(
            'a JSON patch is a list of operations such as [{"op": "replace", "path": "/spec/replicas", "value": 1}]'
        )
    if len(operations) > MAX_OPERATIONS:
        raise TooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}"
        )
    return operations


class _Patching:
    """A document while it is changed. Containers are copied when they are first changed, not once for each operation;
    those that came in stay as they were."""

    def __init__(self, doc: Any) -> None:
        self.doc = doc
        self._own: dict[int, Any] = {}
        self._copied = 0

    def operate(self, step: Obj) -> None:
        operation, path = step.get("op"), _tokens(step, "path")
        value = step.get("value")
        match operation:
            case "add":
                self._change(path, lambda here, key: _add(here, key, value))
            case "remove":
                self._change(path, _remove)
            case "replace" if not path:
                self.doc = _replaced_document(value)
            case "replace":
                self._change(path, lambda here, key: _replace(here, key, value))
            case "test":
                _test(self.doc, path, value)
            case "copy" | "move":
                source = _tokens(step, "from")
                moved = _source(self.doc, source)
                if operation == "move":
                    self._change(source, _remove)
                else:
                    moved = self._copy(moved)
                self._change(path, lambda here, key: _add(here, key, moved))
            case _:
                raise _Refused(f"{operation!r} is no operation; use {', '.join(sorted(_OPERATIONS))}")

    def _copy(self, value: Any) -> Any:
        """Its own tree: a few copies of a document into itself would double it each time (apiserver
        ``JSONPatchMaxCopyBytes``)."""
        raw = msgspec.json.encode(value)
        self._copied += len(raw)
        if self._copied > MAX_COPIED_BYTES:
            raise _Refused(f"copies take {self._copied} bytes; at most {MAX_COPIED_BYTES} are allowed")
        return msgspec.json.decode(raw)

    def _change(self, path: list[str], edit: Callable[[Any, str], None]) -> None:
        """Edit the container that ends ``path``, after making it and those above our own."""
        if not path:
            raise _Refused("the whole document can only be replaced")
        self.doc = here = self._owned(self.doc)
        for token in path[:-1]:
            key = _existing(here, token)
            here[key] = here = self._owned(here[key])
        edit(here, path[-1])

    def _owned(self, node: Any) -> Any:
        if id(node) in self._own or not isinstance(node, dict | list):
            return node
        made = node.copy()
        self._own[id(made)] = made
        return made


def _tokens(step: Obj, member: str) -> list[str]:
    """The pointer's unescaped tokens; the whole document is the empty list (RFC 6901)."""
    pointer = step.get(member)
    if not isinstance(pointer, str):
        raise _Refused(f"{step.get('op')} has no {member}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _existing(node: Any, token: str) -> Any:
    """The key or index under which ``node`` holds ``token``."""
    if isinstance(node, dict):
        if token in node:
            return token
    elif isinstance(node, list):
        index = _index(token, len(node))
        if index < len(node):
            return index
    raise _Refused(f"{token!r} does not exist")


def _index(token: str, size: int) -> int:
    """An index into a list of ``size``; negative ones count from the end."""
    if not _INDEX.fullmatch(token):
        raise _Refused(f"{token!r} is no index")
    index = int(token)
    if index < 0:
        index += size
    if not 0 <= index <= size:
        raise _Refused(f"index {token} is outside of a list of {size}")
    return index


def _get(doc: Any, path: list[str]) -> Any:
    for token in path:
        doc = doc[_existing(doc, token)]
    return doc


def _add(node: Any, key: str, value: Any) -> None:
    if isinstance(node, dict):
        node[key] = value
        return
    if not isinstance(node, list):
        raise _Refused(f"{key!r} has no container")
    place = len(node) if key == "-" else _index(key, len(node) + 1 if key.startswith("-") else len(node))
    node.insert(place, value)


def _remove(node: Any, key: str) -> None:
    del node[_existing(node, key)]


def _source(doc: Any, path: list[str]) -> Any:
    """What is copied or moved; a field that an object lacks reads as null."""
    holder = _get(doc, path[:-1])
    return holder.get(path[-1]) if path and isinstance(holder, dict) else _get(holder, path[-1:])


def _replace(node: Any, key: str, value: Any) -> None:
    if isinstance(node, dict):
        node[key] = value
    else:
        node[_existing(node, key)] = value


def _replaced_document(value: Any) -> Any:
    if not isinstance(value, (dict, list)):
        raise _Refused("a document can only be replaced by an object or a list")
    return value


def _test(doc: Any, path: list[str], value: Any) -> None:
    holder = _get(doc, path[:-1])
    if not path:
        found = doc
    elif isinstance(holder, dict):
        found = holder.get(path[-1])
    else:
        found = _get(holder, path[-1:])
    if not same_json(found, value):
        raise _Refused(f"/{'/'.join(path)} has another value")


def same_json(left: Any, right: Any) -> bool:
    """Compare JSON values: unlike in Python, ``true`` is not 1 and 1 is not 1.0."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(k in right and same_json(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        if len(left) != len(right):
            return False
        return all(
            same_json(*pair) for pair in [pair for pair in zip(left, right, strict=True) if pair[0] is not pair[1]]
        )
    return bool(left == right)


def check_depth(value: Any) -> None:
    """Raise BadRequest for a patch that is nested deeper than MAX_DEPTH, before anything recurses into it."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise BadRequest(f"the patch is nested deeper than {MAX_DEPTH} levels")


def json_merge_patch(doc: Any, patch: Any) -> Any:
    """Apply RFC 7396: objects merge, null removes, anything else replaces; in objects of a new list, too, null removes,
    as evanphx/json-patch does for API servers and for upstream's diff. Raises BadRequest for deep nesting."""
    check_depth(patch)
    return _merge(doc, patch)


def _merge(doc: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch if isinstance(doc, dict) else _without_nulls(patch)
    made: Obj = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merge(made.get(key), value)
    return made


def _without_nulls(value: Any) -> Any:
    """Return a list without the nulls in its objects; entries that are null stay."""
    if isinstance(value, dict):
        return {
            key: _without_nulls(one) if isinstance(one, (dict, list)) else one
            for key, one in value.items()
            if one is not None
        }
    if isinstance(value, list):
        return [_without_nulls(one) if isinstance(one, (dict, list)) else one for one in value]
    return value


def create_merge_patch(old: Obj, new: Obj) -> Obj:
    """Return the smallest merge patch from ``old`` to ``new``; ``{}`` if they are equal.

    A null inside ``new`` cannot be expressed and reads as a removal (RFC 7396).
    """
    patch: Obj = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if key in old and same_json(before, value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = create_merge_patch(before, value)
        else:
            patch[key] = value
    return patch

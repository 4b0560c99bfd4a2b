"""The fields of a manifest that a server-side apply leaves to others: ``ignoreFields``; pure.

Fields under ``OnSpokePresent`` are not sent once the object exists. Those under ``OnSpokeChange`` are sent, but only
when the hub's content changes; its hash is kept in an annotation. jq expressions may run forever, so they are
evaluated elsewhere and looked up here. Rules: ``server_side_apply.go`` of upstream (reference ocm-pull-model §6.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from syncline.apply.diff.jq import Addressed, Answers, JqQuestion, without
from syncline.kube.objects import Obj, copied
from syncline.kube.text.jsonpath import JsonPathError, compile_template

_ENCODE: Final = msgspec.json.Encoder(order="deterministic").encode


class IgnoreFieldError(ValueError):
    """An expression of ``ignoreFields`` that cannot be evaluated; nothing is applied."""


def without_ignored(manifest: Obj, fields: Iterable[Obj], answers: Answers) -> Obj:
    """Return the manifest without the fields under OnSpokePresent.

    Paths that cannot be read, and missing fields, are passed over. Raises :class:`IgnoreFieldError` for a jq
    expression that fails, and ``apply.diff.jq.Unknown`` with the question where its answer is missing.
    """
    made: Obj = copied(manifest)
    for field in fields:
        if field.get("condition") == "OnSpokeChange":
            continue
        for path in field.get("jsonPaths") or ():
            _remove_path(made, str(path))
        made = without(made, [(tuple(field.get("jsonPointers") or ()), ())], lambda _text, _obj: None)
        if expressions := tuple(field.get("jqPathExpressions") or ()):
            made = _without_addressed(made, expressions, answers)
    return made


def content_hash(manifest: Obj) -> str:
    """Return the hash of what is applied; it changes only with the content."""
    return hashlib.blake2b(_ENCODE(manifest), digest_size=16).hexdigest()


def _remove_path(made: Obj, path: str) -> None:
    """Remove the last key of a JSONPath from each map that the path before it leads to."""
    before, _, key = path.rpartition(".")
    try:
        groups: list[list[Any]] = compile_template(f"{{{before}}}").groups(made) if before else [[made]]
    except JsonPathError:
        return
    for parent in (value for group in groups for value in group):
        if isinstance(parent, dict):
            parent.pop(key, None)


def _without_addressed(made: Obj, expressions: tuple[str, ...], answers: Answers) -> Obj:
    rules = (((), expressions),)
    answer = answers.of(JqQuestion(rules, made))
    if not isinstance(answer, Addressed):
        raise IgnoreFieldError(f"JQ expression error in {getattr(answer, 'why', '') or answer}")
    for expression, tree in zip(expressions, answer.trees, strict=True):
        if tree is None:
            raise IgnoreFieldError(f"JQ expression error in '{expression}': it fails on this manifest")
    trees = iter(answer.trees)
    return without(made, rules, lambda _text, _obj: next(trees))

"""Resolves the templates of one object: :func:`resolve`; pure, bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.lexer import Delimiters
from syncline.kube.gotemplate.template import Limits, parse
from syncline.kube.gotemplate.values import Opaque, StringMap, decode
from syncline.kube.yaml.loading import dump_unfolded, load
from syncline.kube.yaml.nodes import YamlError
from syncline.patterns.policies.templates.asking import Answers
from syncline.patterns.policies.templates.encryption import EncryptionError, Keys, decrypted
from syncline.patterns.policies.templates.functions import Calls, Reach, decode64, functions
from syncline.patterns.policies.templates.text import HUB, MANAGED, prepared

MOST_OUTPUT: Final = 1 << 20
MOST_IN_ERROR: Final = 2048
"""Characters of a template that a message shows; upstream shows all of it."""
SHORTEST_SECRET: Final = 4
"""Characters of a value from which on it is taken out of messages."""
HIDDEN: Final = "the error is not shown: what it is about comes from Secrets"
_LIMITS: Final = Limits(steps=300_000, output=MOST_OUTPUT)


class Unresolved(Exception):
    """Why templates cannot be resolved, in upstream's words. ``lasts``: until the policy, or what it reads, changes."""

    def __init__(self, text: str, *, lasts: bool = False) -> None:
        super().__init__(text)
        self.lasts = lasts


class Context(Opaque):
    """The data of a template: a struct with these fields."""

    __slots__ = ("_fields",)
    go_type = "struct"

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._fields = dict(values)

    def fields(self) -> Mapping[str, Any]:
        return self._fields


class HubContext(Context):
    """The same on a hub, with the name that upstream's has in messages."""

    __slots__ = ()
    go_type = "propagator.templateCtx"


@dataclass(frozen=True, slots=True)
class Rules:
    """How templates are resolved. ``decrypt``: keys of encrypted values in the text; ``encrypt``: those with which
    values of Secrets leave a hub. ``seed``: of what a template draws."""

    delimiters: Delimiters = MANAGED
    reach: Reach = field(default_factory=Reach)
    decrypt: Keys | None = None
    encrypt: Keys | None = None
    more_indent: int = 0
    seed: str = ""
    skipping: bool = True


@dataclass(frozen=True, slots=True)
class Resolved:
    """``sensitive``: something of it comes from a Secret; ``skipped``: ``skipObject`` was called."""

    value: Any = field(default=None, repr=False)
    sensitive: bool = False
    skipped: bool = False


def resolve(source: Any, context: Mapping[str, Any], rules: Rules, answers: Answers, now: datetime) -> Resolved:
    """Resolve the templates of ``source``: an object, or text that is YAML. Raises :class:`Unresolved`, and
    :class:`~.asking.Unknown` for an answer that is not known yet."""
    raw = source if isinstance(source, str) else _shown(source)
    try:
        text = source if isinstance(source, str) else dump_unfolded(source)
    except (TypeError, RecursionError) as error:
        raise Unresolved(f"failed to convert the policy template to YAML: {error}", lasts=True) from error
    calls = Calls(answers, rules.reach, rules.encrypt, rules.more_indent)
    sealed = False
    if rules.decrypt is not None:
        try:
            text, sealed = decrypted(text, rules.decrypt)
            calls.sensitive = sealed
        except EncryptionError as error:
            raise Unresolved(str(error)) from error
    text = prepared(text, rules.delimiters, rules.more_indent)
    known = functions(calls, now, rules.seed, skipping=rules.skipping)
    try:
        template = parse("tmpl", text, known, limits=_LIMITS, delimiters=rules.delimiters)
    except TemplateError as error:
        text = f"failed to parse the template JSON string {_cut(raw)}: {HIDDEN if sealed else error}"
        raise Unresolved(text, lasts=True) from error
    try:
        data = HubContext if rules.delimiters is HUB else Context
        made = template.render(data({key: _typed(key, one) for key, one in context.items()}))
    except TemplateError as error:
        if calls.skipped:
            return Resolved(sensitive=calls.sensitive, skipped=True)
        said = HIDDEN if sealed else _without_secrets(str(error), answers)
        text = f"failed to resolve the template {_cut(raw)}: {said}"
        raise Unresolved(text, lasts=not any(one.passing for one in answers.values())) from error
    if calls.skipped:
        return Resolved(sensitive=calls.sensitive, skipped=True)
    try:
        value = load(made.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    except YamlError as error:
        text = f"failed to convert the resolved template to JSON: {yaml_problem(error, secret=calls.sensitive)}"
        raise Unresolved(text) from error
    return Resolved(value, calls.sensitive)


def _without_secrets(text: str, answers: Answers) -> str:
    """Return a message without the values of Secrets that were read: functions quote what they refuse."""
    for answer in answers.values():
        found = answer.found if answer.found is not None else {}
        for one in found.get("items") or (found,):
            data = one.get("data") if one.get("kind") == "Secret" else None
            for value in map(str, data.values()) if isinstance(data, dict) else ():
                for shown in (value, decode64(value), decode64(value).strip()):
                    if len(shown) >= SHORTEST_SECRET:
                        text = text.replace(shown, "***")
    return text


def yaml_problem(error: YamlError, *, secret: bool = False) -> str:
    """Return what is wrong as Go's library says it; ``secret``: without what it may quote of the text."""
    line = f"line {error.position.line}: " if error.position is not None and error.position.line > 1 else ""
    return f"yaml: {line}{HIDDEN if secret else error.message}"


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return decode(text.encode("utf-8", "surrogatepass"))


def _cut(raw: str) -> str:
    return raw if len(raw) <= MOST_IN_ERROR else f"{raw[: MOST_IN_ERROR // 2]} … {raw[-MOST_IN_ERROR // 2 :]}"


def _typed(key: str, value: Any) -> Any:
    """Return a value with the types that it has in Go: maps of texts give "" for what they lack."""
    if key == "ManagedClusterLabels" and isinstance(value, dict):
        return StringMap(value)
    if key == "PolicyMetadata" and isinstance(value, dict):
        return {name: StringMap(one) if isinstance(one, dict) else one for name, one in value.items()}
    return value

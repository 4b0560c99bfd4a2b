"""The functions of policy templates: those of sprig, and upstream's go-template-utils; pure.

What reads objects asks for them (``asking.py``). :class:`Reach` says what a template may read: those of a hub are kept
in the namespace of their policy.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text
from syncline.kube.gotemplate.sprig.casting import CASTING
from syncline.kube.gotemplate.sprig.library import sprig_functions
from syncline.kube.gotemplate.values import encode
from syncline.kube.objects import GVK, Obj, copied, dig, labels_of, split_api_version
from syncline.kube.selectors import SelectorError, parse_label_selector
from syncline.kube.yaml.loading import dump_unfolded, load
from syncline.kube.yaml.nodes import YamlError
from syncline.patterns.policies.names import is_true_text
from syncline.patterns.policies.templates.asking import Answers, Question, Unknown
from syncline.patterns.policies.templates.encryption import Keys, protect

_CLAIM: Final = GVK("cluster.open-cluster-management.io", "v1alpha1", "ClusterClaim")
_ROLE: Final = "node-role.kubernetes.io/"
_INVALID: Final = "the input is invalid"
_DENIED: Final = ("env", "expandenv")
_TEXT, _ANY, _DICT = Kind.STRING, Kind.ANY, Kind.DICT


@dataclass(frozen=True, slots=True)
class Reach:
    """``namespace``: the only one that a template may read; empty: all. ``cluster_scoped``: with a namespace, the
    cluster-scoped objects that it may read, as (group, kind, name). ``leaves``: what it gives leaves the cluster, so
    that Secrets are only read by what encrypts them."""

    namespace: str = ""
    cluster_scoped: frozenset[tuple[str, str, str]] = frozenset()
    leaves: bool = False


@dataclass(slots=True)
class Calls:
    """What the functions of one rendering need, and what they note. ``keys``: values of Secrets are encrypted with
    them; None: they are given as they are, and ``protect`` is refused. ``more_indent``: spaces that ``indent`` adds."""

    answers: Answers
    reach: Reach
    keys: Keys | None = None
    more_indent: int = 0
    sensitive: bool = False
    skipped: bool = False

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, api_version: str, kind: str, namespace: str, name: str, *selector: str) -> Obj | None:
        """Return an object or a List; None: it does not exist. Raises FunctionError with upstream's text."""
        if not api_version or not kind:
            raise FunctionError("the apiVersion and kind are required")
        limit = self.reach.namespace
        if limit and namespace not in ("", limit):
            raise FunctionError(f"the namespace argument is restricted to {limit}")
        labels = ",".join(selector) if selector and selector[0] else ""
        try:
            parse_label_selector(labels)
        except SelectorError as error:
            raise FunctionError(str(error)) from error
        gvk = GVK(*split_api_version(api_version), kind)
        question = Question(gvk, namespace or limit, name, labels)
        answer = self.answers.get(question)
        if answer is None:
            raise Unknown(question)
        if answer.unserved:
            raise FunctionError("one or more API resources are not installed on the API server")
        if limit and not answer.namespaced and (gvk.group, kind, name) not in self.reach.cluster_scoped:
            raise FunctionError(f"lookup of cluster-scoped resource '{kind}/{name}' is not allowed")
        if answer.error and not answer.missing:
            raise FunctionError(answer.error)
        if kind == "Secret" and answer.found is not None and (name or dig(answer.found, "items")):
            self.sensitive = True
        return copied(answer.found) if answer.found is not None else None

    def _existing(self, gvk: GVK, namespace: str, name: str, what: str) -> Obj:
        try:
            found = self.read(gvk.api_version, gvk.kind, namespace, name)
        except FunctionError as error:
            raise FunctionError(f"{what}{error}") from error
        if found is None:
            answer = self.answers[Question(gvk, namespace or self.reach.namespace, name)]
            raise FunctionError(f"{what}{answer.error}")
        return found

    def lookup(self, api_version: str, kind: str, namespace: str, name: str, *selector: str) -> Obj:
        if self.reach.leaves and kind == "Secret":
            text = "Secrets are not looked up in hub templates: fromSecret and copySecretData encrypt what they give"
            raise FunctionError(text)
        return self.read(api_version, kind, namespace, name, *selector) or {}

    def _named(self, namespace: str, *others: str, words: str) -> None:
        if not all(others) or not (namespace or self.reach.namespace):
            raise FunctionError(f"{_INVALID}: {words} must be specified")

    def from_secret(self, namespace: str, name: str, key: str) -> str:
        self._named(namespace, name, key, words="namespace, name, and key")
        what = f"failed to get the secret {name} from {namespace}: "
        value = dig(self._existing(GVK("", "v1", "Secret"), namespace, name, what), "data", key)
        return self._guarded(value if isinstance(value, str) else "")

    def copy_secret(self, namespace: str, name: str) -> str:
        self._named(namespace, name, words="namespace and name")
        what = f"failed to get the secret {name} from {namespace}: "
        data = self._existing(GVK("", "v1", "Secret"), namespace, name, what).get("data")
        guarded = {key: self._guarded(str(one)) for key, one in data.items()} if isinstance(data, dict) else None
        return _json(guarded)

    def from_config_map(self, namespace: str, name: str, key: str) -> str:
        self._named(namespace, name, key, words="namespace, name, and key")
        what = f"failed getting the ConfigMap {name} from {namespace}: "
        value = dig(self._existing(GVK("", "v1", "ConfigMap"), namespace, name, what), "data", key)
        return value if isinstance(value, str) else ""

    def copy_config_map(self, namespace: str, name: str) -> str:
        self._named(namespace, name, words="namespace and name")
        what = f"failed getting the ConfigMap {name} from {namespace}: "
        return _json(self._existing(GVK("", "v1", "ConfigMap"), namespace, name, what).get("data"))

    def claim(self, name: str) -> str:
        if not name:
            raise FunctionError("a claim name must be provided")
        return _claimed(self._existing(_CLAIM, "", name, ""), name)

    def lookup_claim(self, name: str) -> str:
        if not name:
            raise FunctionError("a claim name must be provided")
        found = self.read(_CLAIM.api_version, _CLAIM.kind, "", name)
        return _claimed(found, name) if found is not None else ""

    def nodes(self, *roles: str) -> Obj:
        """Return a List of the nodes with just these roles; that of workers is not counted."""
        wanted = [_ROLE + one for one in roles if one.strip()]
        if not wanted:
            raise FunctionError(f"{_INVALID}: at least one name must be specified")
        found = self.read("v1", "Node", "", "", *wanted) or {}
        allowed = {*wanted, _ROLE + "worker"}
        items = [
            one
            for one in found.get("items") or ()
            if all(label in allowed for label in labels_of(one) if label.startswith(_ROLE.rstrip("/")))
        ]
        return {**found, "items": items}

    # -- secrets ---------------------------------------------------------------------------------------------------

    def _guarded(self, value: str) -> str:
        return protect(value, self.keys) if self.keys is not None else value

    def protect(self, value: str) -> str:
        if self.keys is None:
            raise FunctionError("the protect template function is not enabled in this mode")
        return protect(value, self.keys)

    # -- texts -----------------------------------------------------------------------------------------------------

    def indent(self, spaces: int, text: str) -> str:
        spaces = max(spaces + self.more_indent, 0)
        check_text(len(text) + spaces * (text.count("\n") + 1))
        pad = " " * spaces
        return f"\n{pad}{text.replace(chr(10), chr(10) + pad)}".strip()

    def skip(self, *given: Any) -> str:
        if len(given) > 1:
            raise FunctionError(f"expected one optional boolean argument but received {len(given)} arguments")
        if given and not self.skipped and not isinstance(given[0], bool):
            raise FunctionError(f"expected boolean but received '{given[0]}'")
        self.skipped = self.skipped or not given or given[0] is True
        return ""


def functions(calls: Calls, now: datetime, seed: str, *, skipping: bool) -> Mapping[str, Function]:
    """Return all functions of one rendering. ``seed``: of what is drawn; ``skipping``: with ``skipObject``."""
    made = dict(sprig_functions(lambda: now, Entropy(seed)))
    for name in ("Json", "mustFromJson", "mustToJson", "toRawJson", "mustToRawJson", "fromJson", "toJson"):
        if name in made:
            made[name.replace("Json", "JSON")] = made[name]
    made |= dict.fromkeys(_DENIED, _refused_function("env"))
    made |= {name: _refused_function(name) for name in _DENIED}
    texts = (_TEXT,)
    return {
        **made,
        "copyConfigMapData": Function(calls.copy_config_map, texts * 2, result=_TEXT),
        "copySecretData": Function(calls.copy_secret, texts * 2, result=_TEXT),
        "fromSecret": Function(calls.from_secret, texts * 3, result=_TEXT),
        "fromConfigMap": Function(calls.from_config_map, texts * 3, result=_TEXT),
        "fromClusterClaim": Function(calls.claim, texts, result=_TEXT),
        "lookupClusterClaim": Function(calls.lookup_claim, texts, result=_TEXT),
        "getNodesWithExactRoles": Function(calls.nodes, texts, variadic=True, result=_DICT),
        "hasNodesWithExactRoles": Function(
            lambda *roles: bool(calls.nodes(*roles)["items"]), texts, variadic=True, result=Kind.BOOL
        ),
        "lookup": Function(calls.lookup, texts * 5, variadic=True, result=_DICT),
        "protect": Function(calls.protect, texts, result=_TEXT),
        "indent": Function(calls.indent, (Kind.INT, _TEXT), result=_TEXT),
        **_PLAIN,
        **({"skipObject": Function(calls.skip, (_ANY,), variadic=True, result=_TEXT)} if skipping else {}),
    }


def _refused_function(name: str) -> Function:
    def refuse(*_given: Any) -> Any:
        raise FunctionError(f"use of denylisted template function: function '{name}' is considered a security risk")

    return Function(refuse, (_ANY,), variadic=True)


def _claimed(claim: Obj, name: str) -> str:
    spec = claim.get("spec")
    if not isinstance(spec, dict):
        raise FunctionError(f"unexpected ClusterClaim format: {name}")
    return str(spec.get("value") or "")


def _json(value: Any) -> str:
    """Return JSON as Go's ``json.Marshal``: sorted, without spaces, with ``<``, ``>`` and ``&`` escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    check_text(len(text))
    return text


def _encode64(text: str) -> str:
    return base64.b64encode(encode(text)).decode()


def decode64(text: str) -> str:
    """Return the text that a Base64 text stands for; of another one what Go says of it."""
    try:
        cleaned = text.replace("\n", "").replace("\r", "")
        return base64.b64decode(cleaned, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        bad = next((at for at, char in enumerate(text) if not (char.isalnum() or char in "+/=\r\n")), len(text))
        return f"illegal base64 data at input byte {min(bad, len(text) - len(text) % 4)}"


def _to_literal(text: str) -> str:
    if "\n" in text:
        raise FunctionError("new lines are not allowed in the string passed to the toLiteral function")
    return text


def _auto(_text: str) -> str:
    raise FunctionError("an unexpected error occurred where autoindent could not be processed")


def _from_yaml(text: str) -> Any:
    try:
        return load(text)
    except YamlError as error:
        raise FunctionError(str(error)) from error


def _to_yaml(value: Any) -> str:
    try:
        text = dump_unfolded(value).removesuffix("\n")
    except (TypeError, RecursionError) as error:
        raise FunctionError(f"yaml marshal error: {error}") from error
    check_text(len(text))
    return text


def _atoi(text: str) -> int:
    try:
        return int(text) if text.strip() == text and "_" not in text else 0
    except ValueError:
        return 0


_of: Callable[..., Function] = Function
_PLAIN: Final[Mapping[str, Function]] = {
    **dict.fromkeys(("base64enc", "b64enc"), _of(_encode64, (_TEXT,), result=_TEXT)),
    **dict.fromkeys(("base64dec", "b64dec"), _of(decode64, (_TEXT,), result=_TEXT)),
    "autoindent": _of(_auto, (_TEXT,), result=_TEXT),
    "atoi": _of(_atoi, (_TEXT,), result=Kind.INT),
    "toInt": _of(CASTING["int"].call, (_ANY,), result=Kind.INT),
    "toBool": _of(is_true_text, (_TEXT,), result=Kind.BOOL),
    "toLiteral": _of(_to_literal, (_TEXT,), result=_TEXT),
    **dict.fromkeys(("fromYAML", "fromYaml"), _of(_from_yaml, (_TEXT,))),
    **dict.fromkeys(("toYAML", "toYaml"), _of(_to_yaml, (_ANY,), result=_TEXT)),
}

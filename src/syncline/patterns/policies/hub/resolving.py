"""Templates of the hub in the copy of a policy: :class:`ResolveHub`, and who may read what for them.

Without ``hubTemplateOptions`` a template reads the namespace of its policy and the ManagedCluster that it is for, as
the controller; with a service account of that namespace it reads what the account may, as the account. What comes from
Secrets leaves the hub encrypted.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from syncline.base.action import Action, Purpose, Work
from syncline.control.executor import IMPERSONATE
from syncline.kube.client import Request
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, Obj, annotations_of, copied, dig, labels_of, name_of, namespace_of
from syncline.patterns.policies.cluster.actions import Tracked
from syncline.patterns.policies.cluster.reading import Access
from syncline.patterns.policies.hub.replicating import templated
from syncline.patterns.policies.names import DISABLE_TEMPLATES, HUB_ERROR, IV, KEY_SECRET, is_true_text
from syncline.patterns.policies.templates.asking import Question, Unknown
from syncline.patterns.policies.templates.encryption import EncryptionError, Keys, keys_of, vector_of
from syncline.patterns.policies.templates.functions import Reach
from syncline.patterns.policies.templates.resolving import Resolved, Rules, Unresolved, resolve
from syncline.patterns.policies.templates.text import HUB, uses_encryption

ACCOUNTS: Final = GVK("", "v1", "ServiceAccount")
SECRETS: Final = GVK("", "v1", "Secret")
MOST_QUESTIONS: Final = 200
MORE_INDENT: Final = 8
"""How much deeper the objects of a policy's templates are in its YAML than upstream's resolver sees them."""


@dataclass(frozen=True, slots=True)
class ResolveHub(Action):
    """Resolve the templates of the hub in ``wanted``, the copy of ``root`` for one cluster."""

    root: Obj = field(repr=False)
    wanted: Obj = field(repr=False)
    now: datetime
    reason: str

    @property
    def managed_cluster(self) -> str:
        return namespace_of(self.wanted)

    def describe(self) -> str:
        return f"resolve the hub templates of {name_of(self.wanted)} for {self.managed_cluster}"


@dataclass(frozen=True, slots=True)
class ResolvedHub:
    """``wanted``: the copy with resolved templates, or with the error on the one that has it. ``again``: it shall be
    tried again by itself."""

    wanted: Obj = field(repr=False)
    error: str = ""
    again: bool = False
    tracked: frozenset[Tracked] = frozenset()


class ResolveHubHandler:
    """Performs :class:`ResolveHub`. ``mapper``: the kinds of the hub."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def handle(self, action: ResolveHub) -> Generator[Any, Any, ResolvedHub]:
        return (yield from _Resolution(action, Access(self._mapper)).whole())


class _Failed(Exception):
    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


class _Resolution:
    def __init__(self, action: ResolveHub, access: Access) -> None:
        self._action, self._access = action, access
        self._wanted: Obj = copied(action.wanted)
        self._account = str(dig(action.root, "spec", "hubTemplateOptions", "serviceAccountName") or "")

    def whole(self) -> Generator[Any, Any, ResolvedHub]:
        places = templated(self._wanted)
        if is_true_text(annotations_of(self._wanted).get(DISABLE_TEMPLATES, "")):
            places = ()
        error, again = "", False
        for at in places:
            try:
                yield from self._template(at)
            except _Failed as failed:
                error, again = str(failed), failed.again
                entry = self._wanted["spec"]["policy-templates"][at]
                entry["objectDefinition"] = _annotated(entry.get("objectDefinition") or {}, HUB_ERROR, error)
                break
        return ResolvedHub(self._wanted, error, again, frozenset(self._access.tracked))

    def _template(self, at: int) -> Generator[Any, Any, None]:
        entry = self._wanted["spec"]["policy-templates"][at]
        definition = entry.get("objectDefinition") or {}
        text = json.dumps(definition, ensure_ascii=False)
        yield from self._account_exists()
        keys = (yield from self._keys()) if uses_encryption(text, HUB) else None
        context = yield from self._context(text)
        rules = Rules(HUB, self._reach(), encrypt=keys, more_indent=MORE_INDENT, seed=name_of(self._wanted))
        resolved = yield from self._resolved(definition, context, replace(rules, skipping=False))
        if resolved.sensitive and keys is None:
            raise _Failed("values of Secrets leave the hub only encrypted: use fromSecret or protect", again=False)
        made = resolved.value if isinstance(resolved.value, dict) else {}
        if keys is not None:
            made = _annotated(made, IV, annotations_of(self._wanted)[IV])
        entry["objectDefinition"] = made

    def _account_exists(self) -> Generator[Any, Any, None]:
        if not self._account:
            return
        place = namespace_of(self._action.root)
        answer = yield from self._access.answer(Question(ACCOUNTS, place, self._account))
        if answer.found is None:
            named = f"{place}/{self._account}"
            why = f"the service account in hubTemplateOptions.serviceAccountName ({named}) does not exist"
            raise _Failed(why if answer.missing else answer.error, again=True)

    def _reach(self) -> Reach:
        if self._account:
            return Reach(leaves=True)
        allowed = frozenset({(*MANAGED_CLUSTER.group_kind, self._action.managed_cluster)})
        return Reach(namespace_of(self._action.root), allowed, leaves=True)

    def _context(self, text: str) -> Generator[Any, Any, Obj]:
        root, cluster = self._action.root, self._action.managed_cluster
        context: Obj = {
            "ManagedClusterName": cluster,
            "ManagedClusterLabels": {},
            "PolicyMetadata": {
                "annotations": annotations_of(root),
                "labels": labels_of(root),
                "name": name_of(root),
                "namespace": namespace_of(root),
            },
        }
        if "ManagedClusterLabels" in text:
            answer = yield from self._access.answer(Question(MANAGED_CLUSTER, "", cluster))
            if answer.found is None:
                raise _Failed(answer.error, again=True)
            context["ManagedClusterLabels"] = dict(labels_of(answer.found))
        return context

    def _keys(self) -> Generator[Any, Any, Keys]:
        cluster = self._action.managed_cluster
        answer = yield from self._access.answer(Question(SECRETS, cluster, KEY_SECRET))
        if answer.found is None:
            raise _Failed(f"failed to get the Secret {cluster}/{KEY_SECRET}: {answer.error}", again=True)
        try:
            return keys_of(answer.found, vector_of(annotations_of(self._wanted).get(IV, "")))
        except EncryptionError as error:
            raise _Failed(str(error), again=True) from error

    def _resolved(self, definition: Obj, context: Obj, rules: Rules) -> Generator[Any, Any, Resolved]:
        asked = Access(self._access.served, self._access.tracked)
        for _ in range(MOST_QUESTIONS):
            run = partial(_attempt, definition, context, rules, dict(asked.answers), self._action.now)
            label = f"hub templates of {name_of(self._wanted)}"
            made = yield Work(label, run, Purpose.EVALUATION, project=namespace_of(self._action.root))
            if isinstance(made, Resolved):
                return made
            if isinstance(made, Unresolved):
                raise _Failed(str(made), again=not made.lasts)
            yield from self._as_account(asked.answer(made.question))
        raise _Failed(f"the templates look up more than {MOST_QUESTIONS} objects and lists", again=False)

    def _as_account(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Send requests as the service account of the policy, if it has one."""
        user = f"system:serviceaccount:{namespace_of(self._action.root)}:{self._account}" if self._account else ""
        answer: Any = None
        while True:
            try:
                wanted = steps.send(answer)
            except StopIteration as end:
                return end.value
            if user and isinstance(wanted, Request):
                wanted = replace(wanted, headers={**wanted.headers, IMPERSONATE: user})
            answer = yield wanted


def _attempt(
    definition: Obj, context: Obj, rules: Rules, answers: Any, now: datetime
) -> Resolved | Unknown | Unresolved:
    try:
        return resolve(definition, context, rules, answers, now)
    except (Unknown, Unresolved) as error:
        return error


def _annotated(definition: Obj, name: str, value: str) -> Obj:
    metadata = definition.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), name: value}
    return {**definition, "metadata": {**metadata, "annotations": annotations}}

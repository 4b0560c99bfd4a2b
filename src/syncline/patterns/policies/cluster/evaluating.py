"""Performs :class:`~.actions.Evaluate` and :class:`~.actions.Prune` as requests to the agent's own cluster.

A refusal is data: it concerns one object. Where the cluster does not answer, the error is raised and nothing is
concluded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

from syncline.kube import client
from syncline.kube.errors import ApiError, NotFound
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    split_api_version,
    uid_of,
)
from syncline.kube.yaml.loading import load
from syncline.kube.yaml.nodes import YamlError
from syncline.patterns.policies.cluster import reasons
from syncline.patterns.policies.cluster.actions import (
    Evaluate,
    Evaluated,
    Prune,
    Pruned,
    TemplateResult,
    Tracked,
)
from syncline.patterns.policies.cluster.desiring import Desires, Template, Wanted
from syncline.patterns.policies.cluster.enforcing import Enforcer
from syncline.patterns.policies.cluster.reading import AWAY, Access
from syncline.patterns.policies.cluster.reasons import ObjectResult, Verdict, verdicts_of
from syncline.patterns.policies.cluster.relating import continued
from syncline.patterns.policies.names import DISABLE_TEMPLATES, IV, KEY_SECRET, is_enforced, is_true_text
from syncline.patterns.policies.templates.asking import Question
from syncline.patterns.policies.templates.encryption import EncryptionError, Keys, keys_of, vector_of
from syncline.patterns.policies.templates.resolving import Rules, Unresolved, yaml_problem
from syncline.patterns.policies.templates.text import MANAGED, has_template

SECRETS: Final = GVK("", "v1", "Secret")
MOST_TEMPLATES: Final = 500
"""Object templates of one policy."""
RETRY_S: Final = 10.0
"""Seconds until an evaluation that failed is tried again, as upstream's for missing definitions."""
ENCRYPTION_REASON: Final = "Template encryption configuration error"


class EvaluateHandler:
    """Performs :class:`Evaluate`. ``mapper``: the kinds of the cluster; ``note``: called with a policy and what it is
    about to read."""

    def __init__(self, mapper: Mapper, note: Callable[[ObjectRef, Tracked], None]) -> None:
        self._mapper, self._note = mapper, note

    def handle(self, action: Evaluate) -> Generator[Any, Any, Evaluated]:
        access = Access(self._mapper, note=partial(self._note, ref_of(action.policy)))
        return (yield from _Evaluation(action, access).whole())


class _Evaluation:
    def __init__(self, action: Evaluate, access: Access) -> None:
        self._action, self._access = action, access
        self._policy = action.policy
        self._spec: Mapping[str, Any] = action.policy.get("spec") or {}
        self._before: tuple[Obj, ...] = tuple(dig(action.policy, "status", "relatedObjects") or ())
        self._related: list[Obj] = []
        self._failed = self._errors = self._held = False
        self._lasts = True

    def whole(self) -> Generator[Any, Any, Evaluated]:
        if not self._spec.get("remediationAction"):
            return self._ended("Invalid spec", "Policy does not have a RemediationAction specified", related=None)
        rules: Rules | None = None
        if not is_true_text(annotations_of(self._policy).get(DISABLE_TEMPLATES, "")):
            try:
                rules = Rules(decrypt=(yield from self._keys()), seed=uid_of(self._policy))
            except EncryptionError as error:
                return self._ended(ENCRYPTION_REASON, str(error), again_s=RETRY_S)
        desires = Desires(self._policy, self._access, self._action.now, rules)
        templates: Any = self._spec.get("object-templates") or []
        sensitive, raw = False, self._spec.get("object-templates-raw")
        if raw:
            try:
                templates, sensitive = yield from self._from_text(str(raw), desires)
            except Unresolved as error:
                again_s = 0.0 if error.lasts else RETRY_S
                return self._ended(reasons.TEMPLATE_ERROR, str(error), again_s=again_s)
            desires = Desires(self._policy, self._access, self._action.now, None)
        if not templates:
            text = f"{name_of(self._policy)} contains no object templates to check, and thus has no violations"
            return self._made(whole=Verdict(True, "No object templates", text))
        if len(templates) > MOST_TEMPLATES:
            text = f"the policy has {len(templates)} object templates; at most {MOST_TEMPLATES} are evaluated: split it"
            return self._ended(reasons.TEMPLATE_ERROR, text, related=None)
        results = []
        for index, one in enumerate(templates):
            results.append((yield from self._template(Template(index, one), desires, sensitive)))
        return self._made(tuple(results))

    def _keys(self) -> Generator[Any, Any, Keys | None]:
        """Return the keys of encrypted values; None: the policy has none. Raises EncryptionError."""
        given = annotations_of(self._policy).get(IV, "")
        if not given:
            return None
        vector = vector_of(given)
        place = namespace_of(self._policy)
        answer = yield from self._access.answer(Question(SECRETS, place, KEY_SECRET))
        if answer.found is None:
            raise EncryptionError(f"failed to get the encryption key from Secret {place}/{KEY_SECRET}: {answer.error}")
        return keys_of(answer.found, vector)

    def _from_text(self, raw: str, desires: Desires) -> Generator[Any, Any, tuple[list[Obj], bool]]:
        """Return the object templates of ``object-templates-raw``. Raises Unresolved."""
        sensitive = False
        if has_template(raw, MANAGED, encrypted=True) and desires.rules is not None:
            found = yield from desires.resolved(raw, {})
            value, sensitive = found.value, found.sensitive
        else:
            try:
                value = load(raw)
            except YamlError as error:
                text = f"error converting YAML to JSON: {yaml_problem(error)}"
                raise Unresolved(f"Error parsing object-templates-raw YAML: {text}", lasts=True) from error
        if value is None:
            return [], sensitive
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise Unresolved(
                "failed unmarshalling resolved object-templates-raw template: json: cannot unmarshal "
                f"{'object' if isinstance(value, dict) else 'value'} into Go value of type []*v1.ObjectTemplate"
            )
        return value, sensitive

    def _template(self, template: Template, desires: Desires, sensitive: bool) -> Generator[Any, Any, TemplateResult]:
        wanted: Wanted = yield from desires.of(template)
        self._related += wanted.related
        if wanted.failed:
            self._errors = True
            self._note(wanted.lasts)
        results: dict[str, ObjectResult] = {}
        if wanted.event is not None:
            results["ns"] = ObjectResult((), (wanted.event,))
        if wanted.info is not None:
            enforce = is_enforced(self._spec.get("remediationAction"))
            secret = sensitive or wanted.sensitive
            hold = self._action.hold
            enforcer = Enforcer(self._access, template, wanted.info, enforce, secret, self._before, hold)
            for one in wanted.objects:
                handled = yield from enforcer.handle(one)
                results[f"{namespace_of(one)}/{name_of(one)}"] = handled.result
                self._related += handled.related
                self._held |= handled.held
                if handled.failed:
                    self._note(lasts=False)
        resource = wanted.info.plural if wanted.info is not None else ""
        return TemplateResult(verdicts_of(results, resource))

    def _note(self, lasts: bool) -> None:
        self._failed = True
        self._lasts = self._lasts and lasts

    def _ended(
        self, reason: str, message: str, again_s: float = 0.0, related: tuple[Obj, ...] | None = ()
    ) -> Evaluated:
        tracked = frozenset(self._access.tracked)
        verdict = Verdict(False, reason, message)
        return Evaluated((), verdict, related, False, again_s, lasts=not again_s, tracked=tracked)

    def _made(self, templates: tuple[TemplateResult, ...] = (), whole: Verdict | None = None) -> Evaluated:
        found = tuple(continued(self._related, self._before))
        again = RETRY_S if self._failed and not self._lasts else 0.0
        tracked = frozenset(self._access.tracked)
        return Evaluated(templates, whole, found, not self._errors, again, held=self._held, tracked=tracked)


# -- pruning -----------------------------------------------------------------------------------------------------------


class PruneHandler:
    """Performs :class:`Prune`: deletes by uid, and says what is left."""

    def __init__(self, mapper: Mapper) -> None:
        self._access = Access(mapper)

    def handle(self, action: Prune) -> Generator[Any, Any, Pruned]:
        left: list[tuple[str, Obj]] = []
        for one in action.related:
            said = yield from self._pruned(one, action.every)
            if said:
                left.append((said, one))
        return Pruned(tuple(said for said, _ in left), tuple(one for _, one in left))

    def _pruned(self, entry: Obj, every: bool) -> Generator[Any, Any, str]:
        found = entry.get("object") or {}
        gvk = GVK(*split_api_version(str(found.get("apiVersion") or "")), str(found.get("kind") or ""))
        info = self._access.served_as(gvk)
        namespace, name = (str(dig(found, "metadata", key) or "") for key in ("namespace", "name"))
        if info is None:
            return ""
        said = f'{_gvk_text(gvk)} "{name}" in namespace {namespace}'
        try:
            live = yield from self._access.get(info, namespace, name)
            if live is None or not (every or _is_own(entry, live)):
                return ""
            if is_terminating(live):
                return said
            answer = yield client.delete(info, namespace, name, uid=uid_of(live))
            if answer.status != NotFound.code:
                answer.or_raise()
            left = yield from self._access.get(info, namespace, name)
        except AWAY:
            raise
        except ApiError:
            return said
        return said if left is not None and uid_of(left) == uid_of(live) else ""


def _is_own(entry: Obj, live: Obj) -> bool:
    properties = entry.get("properties") or {}
    return properties.get("createdByPolicy") is True and properties.get("uid") == uid_of(live)


def _gvk_text(gvk: GVK) -> str:
    """Return it as Go prints a GroupVersionKind."""
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"

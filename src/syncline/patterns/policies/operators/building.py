"""What a policy asks for, with its templates resolved and the defaults of its package (:func:`wanted_of`)."""

from __future__ import annotations

from typing import Any, Final

from syncline.kube import client
from syncline.kube.errors import ApiError, NotFound
from syncline.kube.kinds.governance import OPERATOR_POLICY
from syncline.kube.kinds.operatorlifecycle import (
    PACKAGE_MANIFEST,
    SUBSCRIPTION,
)
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    labels_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from syncline.patterns.policies.cluster.desiring import Desires
from syncline.patterns.policies.cluster.reading import AWAY
from syncline.patterns.policies.names import (
    CLUSTER_NAME,
    CLUSTER_NAMESPACE,
    DISABLE_TEMPLATES,
    is_enforced,
    is_true_text,
)
from syncline.patterns.policies.operators import words
from syncline.patterns.policies.operators.looking import NAMESPACE, Look, Steps
from syncline.patterns.policies.operators.wanted import (
    NO_MANIFEST,
    InvalidSpec,
    adopted,
    completed,
    group_of,
    label_of,
    needs_defaults,
    subscription_of,
    versions_of,
    with_defaults,
)
from syncline.patterns.policies.templates.resolving import Rules, Unresolved

MANIFEST_S: Final = 60.0
"""Seconds until a PackageManifest is looked for again: they cannot be watched."""


def wanted_of(look: Look) -> Steps:
    """Return the Subscription, the OperatorGroup and the PackageManifest; None: not known."""
    made: list[Any] = [None, None, None]
    error = ""
    try:
        yield from _built(look, made)
        error = yield from _overlap(look, made[0])
        if error:
            made = [None, None, None]
    except InvalidSpec as invalid:
        error = str(invalid)
        if invalid.passing:
            look.again_s = MANIFEST_S
            made = [None, None, None]
    if error:
        look.report.set(words.valid(error))
        return made
    namespace = namespace_of(made[0])
    if not look.unwanted and (yield from look.get(NAMESPACE, "", namespace)) is None:
        look.report.set(words.valid(f"{words.NO_NAMESPACE} ('{namespace}') does not exist"))
    else:
        look.report.set(words.valid())
    return made


def _built(look: Look, made: list[Any]) -> Steps:
    """Fill in Subscription, OperatorGroup and PackageManifest. Raises InvalidSpec."""
    spec = look.spec
    if spec.get("versions"):
        try:
            found = yield from _resolved(look, {"versions": spec["versions"]})
        except Unresolved as error:
            text = f"unable to create template resolver: could not resolve the version template: {error}"
            raise InvalidSpec(text) from error
        spec = {**spec, "versions": found.get("versions") or []}
    look.versions = versions_of(spec)
    wanted = subscription_of(spec, (yield from _part(look, "subscription", "subscription")), look.versions)
    manifest = yield from _manifest(look, name_of(wanted))
    if needs_defaults(wanted):
        wanted = yield from _completed(look, wanted, manifest)
    if not namespace_of(wanted):
        raise InvalidSpec("namespace is required in spec.subscription")
    made[0] = wanted
    given = yield from _part(look, "operatorGroup", "operator group")
    made[1:] = [group_of(given, namespace_of(wanted)), manifest]


def _part(look: Look, key: str, what: str) -> Steps:
    try:
        return (yield from _resolved(look, look.spec.get(key)))
    except Unresolved as error:
        raise InvalidSpec(f"could not build {what}: {error}") from error


def _resolved(look: Look, source: Any) -> Steps:
    """Resolve the templates of a part of the spec. Raises Unresolved."""
    off = is_true_text(annotations_of(look.policy).get(DISABLE_TEMPLATES, ""))
    if off or "{{" not in str(source):
        return source
    desires = Desires(look.policy, look.access, look.now, Rules(seed=uid_of(look.policy)))
    found = yield from desires.resolved(source, {})
    return found.value


def _manifest(look: Look, package: str) -> Steps:
    """Return the PackageManifest, None if there is none. Raises InvalidSpec."""
    info = look.access.served_as(PACKAGE_MANIFEST)
    if info is None:
        return None
    answer = yield client.get(info, "default", package)
    try:
        return None if answer.status == NotFound.code else answer.or_raise()
    except AWAY:
        raise
    except ApiError as error:
        raise InvalidSpec(str(error), passing=True) from error


def _completed(look: Look, wanted: Obj, manifest: Obj | None) -> Steps:
    known = look.report.entries(SUBSCRIPTION.kind)
    if manifest is not None:
        return with_defaults(wanted, manifest, known)
    namespace = namespace_of(wanted) or adopted(known)
    live = (yield from look.get(SUBSCRIPTION, namespace, name_of(wanted))) if namespace else None
    if live is None:
        raise InvalidSpec(NO_MANIFEST, passing=True)
    return completed({**wanted, "metadata": {**meta(wanted), "namespace": namespace}}, live)


def _overlap(look: Look, wanted: Obj) -> Steps:
    """Note which enforced policies install the same operator; return the error if there are others."""
    status, label = look.report.status, label_of(name_of(wanted), namespace_of(wanted))
    look.note("resolvedSubscriptionLabel", label)
    mine = _qualified(look.policy)
    overlapping = [mine]
    if look.enforced:
        for one in (yield from look.list(OPERATOR_POLICY, namespace_of(look.policy))):
            same = dig(one, "status", "resolvedSubscriptionLabel") == label
            if same and is_enforced(dig(one, "spec", "remediationAction")) and _same_cluster(one, look.policy):
                overlapping += [name for name in (_qualified(one),) if name != mine]
    if len(overlapping) == 1:
        if status.get("overlappingPolicies"):
            look.note("overlappingPolicies", [])
        return ""
    look.note("overlappingPolicies", sorted(overlapping))
    listed = ", ".join(sorted(overlapping))
    return f"the specified operator is managed by multiple enforced policies ({listed})"


def _qualified(policy: Obj) -> str:
    return f"{name_of(policy)}.{namespace_of(policy)}"


def _same_cluster(one: Obj, other: Obj) -> bool:
    return all(labels_of(one).get(key) == labels_of(other).get(key) for key in (CLUSTER_NAME, CLUSTER_NAMESPACE))

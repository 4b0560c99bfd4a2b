"""OperatorGroup and Subscription of an operator: made, corrected or removed."""

from __future__ import annotations

from typing import Final

from syncline.kube import client
from syncline.kube.kinds.operatorlifecycle import (
    CATALOG_SOURCE,
    INSTALL_PLAN,
    OPERATOR_GROUP,
    SERVICE_VERSION,
    SUBSCRIPTION,
)
from syncline.kube.objects import (
    GVK,
    Obj,
    annotations_of,
    dig,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
)
from syncline.patterns.policies.cluster.enforcing import MANAGER
from syncline.patterns.policies.operators import words
from syncline.patterns.policies.operators.looking import Look, Steps
from syncline.patterns.policies.operators.outcome import handle_packages
from syncline.patterns.policies.operators.wanted import (
    COPIED,
    MANAGED,
    allowed,
    concerns,
    package_of,
)
from syncline.patterns.policies.operators.words import CRD, DEPLOYMENT

_ELSEWHERE: Final = (OPERATOR_GROUP, SUBSCRIPTION, INSTALL_PLAN, CRD, DEPLOYMENT, CATALOG_SOURCE)


def copied_version(look: Look, wanted: Obj) -> Steps:
    """Return the copy that OLM made here of an operator for all namespaces."""
    found = yield from look.list(SERVICE_VERSION, namespace_of(wanted), COPIED)
    return next((one for one in found if package_of(one) == dig(wanted, "spec", "name")), None)


def handle_elsewhere(look: Look, wanted: Obj, copy: Obj, manifest: Obj | None) -> Steps:
    report = look.report
    if not allowed(look.spec, look.versions, name_of(copy)):
        report.set(words.version_not_allowed(copy), words.version_not_allowed_entry(copy))
    else:
        for gvk in _ELSEWHERE:
            report.set(words.elsewhere(gvk, labels_of(copy).get(COPIED, "")))
        report.set(words.of_version(copy), words.version_entry(copy))
    handle_packages(look, wanted, name_of(copy), manifest)
    live = (yield from look.get(SUBSCRIPTION, namespace_of(wanted), name_of(wanted))) if look.enforced else None
    if live is not None and annotations_of(live).get(MANAGED) == _owner(look.policy):
        yield from look.delete(SUBSCRIPTION, live)


def handle_group(look: Look, wanted: Obj | None, subscription: str) -> Steps:
    """Return whether the OperatorGroup is correct."""
    if wanted is None:
        look.report.set(words.undetermined(OPERATOR_GROUP))
        return False
    found = yield from look.list(OPERATOR_GROUP, namespace_of(wanted))
    if look.unwanted:
        yield from _no_group(look, wanted, found, subscription)
        return False
    return (yield from _one_group(look, wanted, found))


def _one_group(look: Look, wanted: Obj, found: list[Obj]) -> Steps:
    report, gvk = look.report, OPERATOR_GROUP
    if len(found) > 1:
        report.set(words.TOO_MANY_GROUPS, *map(words.surplus_group_entry, found))
        return False
    if not found:
        new = report.set(words.missing(gvk), words.missing_entry(gvk, wanted))
        if not look.enforced:
            return False
        report.before_change(new)
        made = yield from look.create(gvk, wanted)
        report.set(words.created(gvk), words.created_entry(gvk, made))
        return True
    live, given = found[0], look.spec.get("operatorGroup") is not None
    if not _is_meant(wanted, live):
        if not given:
            report.set(words.GROUP_THERE, words.matched_entry(gvk, live))
            return True
        report.set(words.mismatching(gvk), words.missing_entry(gvk, wanted), words.mismatched_entry(gvk, live))
        return False
    merged, differs, forbidden = yield from look.merge(gvk, wanted, live, ("targetNamespaces", "selector"))
    if not differs or not given:
        fine = words.GROUP_THERE if differs else words.matching(gvk)
        report.set(fine, words.matched_entry(gvk, live))
        return True
    if look.enforced and forbidden:
        report.set(words.mismatching(gvk, " and can't be enforced"), words.mismatched_entry(gvk, live))
        return False
    new = report.set(words.mismatching(gvk), words.mismatched_entry(gvk, live))
    if not look.enforced:
        return False
    report.before_change(new)
    after = (yield client.update(look.must(gvk), merged, field_manager=MANAGER)).or_raise()
    report.set(words.updated(gvk), words.updated_entry(gvk, after))
    return True


def _no_group(look: Look, wanted: Obj, found: list[Obj], subscription: str) -> Steps:
    report, gvk = look.report, OPERATOR_GROUP
    if not found:
        report.set(words.absent(gvk), words.absent_entry(gvk, wanted))
        return
    if len(found) > 1:
        report.set(words.TOO_MANY_GROUPS, *map(words.surplus_group_entry, found))
        return
    live, behaviour = found[0], look.removal("operatorGroups", "DeleteIfUnused")
    keep = behaviour == "Keep"
    if behaviour == "DeleteIfUnused":
        others = yield from look.list(SUBSCRIPTION, namespace_of(wanted))
        keep = any(name_of(one) != subscription for one in others)
    if keep:
        report.set(words.kept(gvk), words.left_entry(gvk, live))
    elif not _is_meant(wanted, live):
        report.set(words.absent(gvk), words.absent_entry(gvk, wanted))
    elif owner_references(live):
        report.set(words.kept(gvk), words.left_entry(gvk, live))
    else:
        yield from removed(look, gvk, live)


def removed(look: Look, gvk: GVK, live: Obj) -> Steps:
    """Delete the one object of a kind."""
    report = look.report
    new = report.set(words.present(gvk), words.unwanted_entry(gvk, live))
    if not look.enforced:
        return
    if is_terminating(live):
        report.set(words.deleting(gvk), words.deleting_entry(gvk, live))
        return
    report.before_change(new)
    yield from look.delete(gvk, live)
    report.set(words.deleted(gvk), words.deleted_entry(gvk, live))


def handle_subscription(look: Look, wanted: Obj | None, correct: bool) -> Steps:
    """Return the Subscription as it is, or as it would be; None: not known."""
    report, gvk = look.report, SUBSCRIPTION
    if wanted is None:
        report.set(words.undetermined(gvk))
        return None
    live = yield from look.get(gvk, namespace_of(wanted), name_of(wanted))
    if look.unwanted:
        if live is None:
            report.set(words.absent(gvk), words.absent_entry(gvk, wanted))
        elif look.removal("subscriptions", "Delete") == "Keep":
            report.set(words.kept(gvk), words.left_entry(gvk, live))
        else:
            yield from removed(look, gvk, live)
        return live or wanted
    if live is not None:
        return (yield from _one_subscription(look, wanted, live))
    new = report.set(words.missing(gvk), words.missing_entry(gvk, wanted))
    if not look.enforced or not correct:
        return wanted
    report.before_change(new)
    made = yield from look.create(gvk, wanted)
    report.set(words.created(gvk), words.created_entry(gvk, made))
    return made


def _one_subscription(look: Look, wanted: Obj, live: Obj) -> Steps:
    report, gvk = look.report, SUBSCRIPTION
    if not look.enforced:
        spec = {key: one for key, one in wanted["spec"].items() if key != "installPlanApproval"}
        wanted = {**wanted, "spec": spec}
    merged, differs, forbidden = yield from look.merge(gvk, wanted, live, ("config",))
    if look.enforced:
        metadata = meta(merged)
        labels, notes = labels_of(merged), annotations_of(merged)
        if MANAGED not in labels or notes.get(MANAGED) != _owner(look.policy):
            differs = True
            marks = {MANAGED: labels.get(MANAGED, "")}
            notes = {**notes, MANAGED: _owner(look.policy)}
            merged = {**merged, "metadata": {**metadata, "labels": {**labels, **marks}, "annotations": notes}}
    if not differs:
        failed = _resolution_failed(live)
        if failed:
            _unresolved(look, live, failed)
        else:
            report.set(words.matching(gvk), words.matched_entry(gvk, live))
        return live
    if look.enforced and forbidden:
        report.set(words.mismatching(gvk, " and can't be enforced"), words.mismatched_entry(gvk, live))
        return merged
    new = report.set(words.mismatching(gvk), words.mismatched_entry(gvk, live))
    if not look.enforced:
        return merged
    report.before_change(new)
    after = (yield client.update(look.must(gvk), merged, field_manager=MANAGER)).or_raise()
    report.set(words.updated(gvk), words.updated_entry(gvk, after))
    return after


def _unresolved(look: Look, live: Obj, failed: Obj) -> None:
    """Report that OLM cannot resolve a Subscription."""
    report, reason = look.report, str(failed.get("reason") or "")
    entry = words.failed_entry(SUBSCRIPTION, live, reason)
    if reason.lower() != "constraintsnotsatisfiable":
        report.set(words.unresolved(failed), entry)
    elif concerns(live, str(failed.get("message") or "")):
        entry = words.failed_entry(SUBSCRIPTION, live, words.UNSATISFIABLE.reason)
        report.set(words.UNSATISFIABLE, entry)
    elif not report.has(words.type_of(SUBSCRIPTION)):
        report.set(words.unresolved(failed), entry)


def _is_meant(wanted: Obj, live: Obj) -> bool:
    """Return whether an OperatorGroup is the one of the policy, by its name or how its name was made."""
    if name_of(wanted):
        return name_of(live) == name_of(wanted)
    return meta(live).get("generateName") == meta(wanted).get("generateName")


def _owner(policy: Obj) -> str:
    return f"{namespace_of(policy)}.{name_of(policy)}"


def _resolution_failed(subscription: Obj) -> Obj | None:
    for one in dig(subscription, "status", "conditions") or ():
        if one.get("type") == "ResolutionFailed" and one.get("status") == "True":
            return dict(one)
    return None

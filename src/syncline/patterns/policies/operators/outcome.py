"""What OLM has made of a Subscription: the version, its definitions and Deployments, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syncline.kube.errors import ApiError
from syncline.kube.kinds.operatorlifecycle import (
    CATALOG_SOURCE,
    SERVICE_VERSION,
)
from syncline.kube.objects import (
    GVK,
    Obj,
    dig,
    is_terminating,
    name_of,
    namespace_of,
)
from syncline.patterns.policies.cluster.reasons import ABSENT, MISSING
from syncline.patterns.policies.names import (
    State,
)
from syncline.patterns.policies.operators import words
from syncline.patterns.policies.operators.looking import Look, Steps, versions_in
from syncline.patterns.policies.operators.wanted import (
    InvalidSpec,
    allowed,
    channel_of,
    deprecation_of,
    label_of,
    later_channels,
)
from syncline.patterns.policies.operators.words import CRD, DEPLOYMENT

_LABEL: Final = "operators.coreos.com/"


def handle_version(look: Look, subscription: Obj | None) -> Steps:
    """Return the installed version, None if there is none."""
    report, gvk = look.report, SERVICE_VERSION
    if subscription is None:
        report.set(words.NO_VERSION, words.NO_VERSION_ENTRY)
        return None
    namespace, (_, installed) = namespace_of(subscription), versions_in(subscription)
    listed = yield from look.list(gvk, namespace, _selector(subscription))
    related = [one for one in listed if not installed or name_of(one) == installed]
    found = next((one for one in related if installed and name_of(one) == installed), None)
    if look.unwanted:
        if not listed:
            entry = words.entry(gvk, namespace, "", State.COMPLIANT, ABSENT)
            report.set(words.absent(gvk), entry)
        elif look.removal("clusterServiceVersions", "Delete") == "Keep":
            report.set(words.kept(gvk), *(words.left_entry(gvk, one) for one in listed))
        else:
            yield from all_removed(look, gvk, listed, named=True)
    elif found is None:
        absent = words.entry(gvk, namespace, name_of(subscription), State.NON_COMPLIANT, MISSING)
        report.set(words.missing(gvk), *(map(words.version_entry, related) if related else (absent,)))
    elif not allowed(look.spec, look.versions, name_of(found)):
        report.set(words.version_not_allowed(found), words.version_not_allowed_entry(found))
    else:
        report.set(words.of_version(found), *map(words.version_entry, related))
    return found


def all_removed(look: Look, gvk: GVK, listed: list[Obj], *, named: bool) -> Steps:
    """Delete all objects of a kind that belong to the operator."""
    report, early = look.report, look.report.early
    names = [name_of(one) for one in listed] if named else []
    entries = [words.unwanted_entry(gvk, one) for one in listed]
    new = report.set(words.present(gvk, names), *entries)
    if not look.enforced:
        return
    report.before_change(new)
    going = False
    for at, one in enumerate(listed):
        if is_terminating(one):
            going = True
            entries[at] = words.deleting_entry(gvk, one)
            continue
        try:
            yield from look.delete(gvk, one)
        except ApiError:
            report.set(words.present(gvk, names), *entries)
            if going:
                report.forget_early(early)
            raise
        entries[at] = words.deleted_entry(gvk, one)
    if going:
        report.forget_early(early)
        report.set(words.deleting(gvk, names), *entries)
    else:
        report.set(words.deleted(gvk, names), *entries)


def handle_packages(look: Look, subscription: Obj | None, version: str, manifest: Obj | None) -> None:
    """Report deprecations and newer channels, where the package is known."""
    report = look.report
    skipped = words.channel_fine("Skipped", "skipping check for minor channel upgrades")
    if look.unwanted or subscription is None or manifest is None:
        report.set(skipped)
        return
    try:
        channel = channel_of(subscription, manifest)
    except InvalidSpec:
        report.set(skipped)
        return
    found = deprecation_of(manifest, channel, version)
    report.set(words.deprecated(*found) if found else words.RECOMMENDED)
    if look.spec.get("upgradeApproval") != "Automatic":
        report.set(skipped)
    elif later := later_channels(manifest, channel):
        bad = dig(look.spec, "complianceConfig", "minorChannelUpgradeAvailable") == State.NON_COMPLIANT
        report.set(words.newer_channels(later, not bad))
    else:
        report.set(words.channel_fine("Recommended", "the subscription is on the recommended channel"))


def handle_definitions(look: Look, subscription: Obj | None) -> Steps:
    report, gvk = look.report, CRD
    listed = []
    if subscription is not None:
        listed = yield from look.list(gvk, "", _selector(subscription))
    if not listed:
        report.set(words.NO_CRDS, words.NO_CRD_ENTRY)
    elif not look.unwanted:
        report.set(words.CRDS, *(words.matched_entry(gvk, one) for one in listed))
    elif look.removal("customResourceDefinitions", "Keep") == "Keep":
        report.set(words.kept(gvk), *(words.left_entry(gvk, one) for one in listed))
    else:
        yield from all_removed(look, gvk, listed, named=False)


def handle_deployments(look: Look, version: Obj | None) -> Steps:
    report = look.report
    if version is None:
        if look.unwanted:
            report.set(words.inapplicable(DEPLOYMENT))
        else:
            report.set(words.NO_DEPLOYMENTS, words.NO_DEPLOYMENT_ENTRY)
        return
    tolerated, entries, unavailable, there = look.tolerated("deploymentsUnavailable"), [], [], False
    for one in dig(version, "spec", "install", "spec", "deployments") or ():
        name, namespace = str(one.get("name") or ""), namespace_of(version)
        live = yield from look.get(DEPLOYMENT, namespace, name)
        if live is None:
            state, reason = State.NON_COMPLIANT, MISSING
            if look.unwanted:
                state, reason = State.COMPLIANT, ABSENT
            entries.append(words.entry(DEPLOYMENT, namespace, name, state, reason))
            continue
        there = True
        if dig(live, "status", "unavailableReplicas"):
            unavailable.append(name)
        unhandled = look.unwanted
        made = words.unhandled_entry(DEPLOYMENT, live) if unhandled else words.deployment_entry(live, tolerated)
        entries.append(made)
    if look.unwanted:
        report.set(words.inapplicable(DEPLOYMENT), *entries)
    else:
        report.set(words.of_deployments(there, unavailable, tolerated), *entries)


def handle_catalog(look: Look, subscription: Obj | None) -> Steps:
    report, gvk = look.report, CATALOG_SOURCE
    if subscription is None:
        report.set(words.inapplicable(gvk) if look.unwanted else words.undetermined(gvk))
        return
    name, namespace = (str(dig(subscription, "spec", key) or "") for key in ("source", "sourceNamespace"))
    live = yield from look.get(gvk, namespace, name)
    if look.unwanted:
        missing = words.entry(gvk, namespace, name, State.COMPLIANT, ABSENT)
        report.set(words.inapplicable(gvk), words.unhandled_entry(gvk, live) if live else missing)
        return
    connection: Mapping[str, Any] | None = dig(live or {}, "status", "connectionState")
    if live is not None and connection is None:
        report.set(words.CATALOG_UNKNOWN, words.unknown_catalog_entry(namespace, name))
        return
    tolerated = look.tolerated("catalogSourceUnhealthy")
    healthy = connection is not None and connection.get("lastObservedState") == "READY"
    said = words.of_catalog(name, live is not None, healthy, tolerated)
    report.set(said, words.catalog_entry(namespace, name, live is not None, healthy, tolerated))


def _selector(subscription: Obj) -> str:
    return _LABEL + label_of(name_of(subscription), namespace_of(subscription))

"""The phases of a ClusterServiceVersion (``transitionCSVState``): one step from what the cluster holds now.

Where upstream writes several objects in one step, :class:`Moved` says which; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, generation, labels_of, name_of, namespace_of
from syncline.patterns.operators.deployments import (
    MISSING_ANNOTATIONS,
    UPDATED,
    check_installed,
    strategy_problem,
)
from syncline.patterns.operators.groups import (
    Apis,
    Intersection,
    Surface,
    fails_forward,
    intersection,
    is_marked,
    marks,
    print_apis,
    provided_apis,
)
from syncline.patterns.operators.installmodes import DuplicateMode, mode_set, unsupported
from syncline.patterns.operators.names import (
    COPIED_FROM,
    OPERATOR_NAMESPACE,
    OWNER,
    OWNER_KIND,
    OWNER_NAMESPACE,
    PROVIDED_APIS,
    TARGET_NAMESPACES,
)
from syncline.patterns.operators.replacing import newest, replaced_by, replacement_chain, replaces
from syncline.patterns.operators.requirements import Needs, Required, judge
from syncline.patterns.operators.serving import (
    Around as Serving,
)
from syncline.patterns.operators.serving import (
    api_problem,
    apis_available,
    certified,
    conversion_problem,
    known_authorities,
    secret_name,
    served_by,
    webhooks_available,
)

NONE, PENDING, READY, INSTALLING = "", "Pending", "InstallReady", "Installing"
SUCCEEDED, FAILED, REPLACING, DELETING = "Succeeded", "Failed", "Replacing", "Deleting"
MOST_CONDITIONS: Final = 20
INSTALL_TIMEOUT: Final = timedelta(minutes=5)
NO_RETRY: Final = "InstallComponentFailedNoRetry"
_GROUP_REASONS: Final = frozenset(
    ("NoTargetNamespaces", "NoOperatorGroup", "TooManyOperatorGroups", "UnsupportedOperatorGroup")
)
_STATIC: Final = "CannotModifyStaticOperatorGroupProvidedAPIs"
_CONFLICT: Final = "InterOperatorGroupOwnerConflict"


def _compare(provided: Apis, group: Surface, others: Sequence[Surface]) -> Intersection:
    return intersection(provided, group, others)


@dataclass(frozen=True, slots=True)
class Around:
    """What a step looks at."""

    csvs: Mapping[str, Obj]
    """Of the namespace, by name."""
    groups: Sequence[Obj] = ()
    """The OperatorGroups of all namespaces."""
    deployments: Mapping[str, Obj] = field(default_factory=dict)
    """Deployments of the namespace with OLM's label, by name."""
    conditions: Mapping[str, Obj] = field(default_factory=dict)
    """OperatorConditions of the namespace, by name."""
    needs: Needs = field(default_factory=Needs)
    config: Obj | None = None
    """``spec.config`` of the Subscription."""
    serving: Serving | None = None
    """Of webhooks and aggregated APIs; None: nothing serves them here, and they count as installed."""
    compare: Callable[[Apis, Surface, Sequence[Surface]], Intersection] = _compare


@dataclass(frozen=True, slots=True)
class Moved:
    """``status``: the next one; the rest: what else is written, and what failed."""

    status: Obj
    error: str = ""
    """Why the step is tried again."""
    annotations: Mapping[str, str] | None = None
    """What the ClusterServiceVersion gets; the step then ends there."""
    provided: str | None = None
    """What the annotation of the OperatorGroup becomes; the step then ends there."""
    install: bool = False
    """Whether its Deployments are written before the status."""
    remove_deployments: bool = False
    delete: bool = False


def with_phase(status: Obj, phase: str, reason: str, message: str, now: datetime, *, force: bool = True) -> Obj:
    """Return the status in a phase; ``force`` False: unchanged if it says the same already."""
    said = (status.get("phase") or "", status.get("reason") or "", status.get("message") or "")
    if not force and said == (phase, reason, message):
        return status
    at = format_time(now)
    new = {**status, "lastUpdateTime": at, "phase": phase, "reason": reason, "message": message}
    if said[0] != phase or "lastTransitionTime" not in new:
        new["lastTransitionTime"] = at if said[0] != phase else status.get("lastTransitionTime", at)
    conditions = list(status.get("conditions") or ())
    if not conditions or (conditions[-1].get("phase"), conditions[-1].get("reason")) != (phase, reason):
        times = {key: new[key] for key in ("lastTransitionTime", "lastUpdateTime")}
        conditions.append({"phase": phase, "reason": reason, "message": message, **times})
    new["conditions"] = conditions[-MOST_CONDITIONS:]
    return new


def is_copied(csv: Obj) -> bool:
    """Return whether a ClusterServiceVersion is a copy that shows an operator of another namespace."""
    home = annotations_of(csv).get(OPERATOR_NAMESPACE)
    strange = home is not None and home != namespace_of(csv)
    return strange or COPIED_FROM in labels_of(csv) or dig(csv, "status", "reason", default="") == "Copied"


@dataclass(frozen=True, slots=True)
class _Step:
    csv: Obj
    around: Around
    now: datetime
    group: Obj = field(default_factory=dict)

    @property
    def status(self) -> Obj:
        return self.csv.get("status") or {}

    def to(self, phase: str, reason: str, message: str, *, error: str = "", force: bool = True) -> Moved:
        return Moved(with_phase(self.status, phase, reason, message, self.now, force=force), error)

    def stay(self, error: str = "") -> Moved:
        return Moved(self.status, error)

    def noting(self, required: Required) -> _Step:
        """Return the step with the requirements in the status."""
        status = {**self.status, "requirementStatus": list(required.statuses)}
        return _Step({**self.csv, "status": status}, self.around, self.now, self.group)


def step(csv: Obj, around: Around, now: datetime) -> Moved:
    """Return what becomes of a ClusterServiceVersion that is neither copied nor being deleted."""
    begun = _Step(csv, around, now)
    if begun.status.get("reason") == NO_RETRY:
        return begun.stay()
    groups = [one for one in around.groups if namespace_of(one) == namespace_of(csv)]
    found = _member(begun, groups) or _supported(begun)
    if found is not None:
        return found
    in_group = _Step(csv, around, now, groups[0])
    return _apis(in_group) or _PHASES.get(begun.status.get("phase") or "", _Step.stay)(in_group)


def _member(at: _Step, groups: Sequence[Obj]) -> Moved | None:
    """Return what follows unless the namespace has one group, of which it is a member."""
    if not groups:
        text = "csv in namespace with no operatorgroups"
        return at.to(FAILED, "NoOperatorGroup", text, error=text)
    if len(groups) > 1:
        text = "csv created in namespace with multiple operatorgroups, can't pick one automatically"
        known = at.status.get("reason") == "TooManyOperatorGroups"
        return at.stay(text) if known else at.to(FAILED, "TooManyOperatorGroups", text, error=text)
    (group,) = groups
    if is_marked(at.csv, group):
        return None
    status = at.status
    if dig(group, "status", "namespaces", default=None) == []:
        text = "no targetNamespaces are matched operatorgroups namespace selection"
        status = with_phase(status, FAILED, "NoTargetNamespaces", text, at.now, force=False)
    return Moved(status, annotations=marks(group))


def _supported(at: _Step) -> Moved | None:
    """Return what follows if the operator cannot watch the namespaces of its group."""
    try:
        modes = mode_set(dig(at.csv, "spec", "installModes", default=None) or ())
    except DuplicateMode as error:
        return at.to(FAILED, "InvalidInstallModes", str(error), force=False)
    targets = annotations_of(at.csv).get(TARGET_NAMESPACES)
    if targets is None:
        return at.to(FAILED, "NoTargetNamespaces", "csv missing olm.targetNamespaces annotation", force=False)
    problem = unsupported(modes, namespace_of(at.csv), targets.split(","))
    return at.to(FAILED, "UnsupportedOperatorGroup", problem, force=False) if problem else None


def _apis(at: _Step) -> Moved | None:
    """Return what follows from the APIs that it provides, if it cannot go on to its phase."""
    provided, surface = provided_apis(at.csv), Surface.of(at.group)
    others = [Surface.of(one) for one in at.around.groups if one is not at.group]
    found, reason = at.around.compare(provided, surface, others), at.status.get("reason")
    if found in (Intersection.ADD, Intersection.REMOVE) and dig(at.group, "spec", "staticProvidedAPIs", default=False):
        return _refused(at, _STATIC, "static provided api operatorgroup cannot be modified by these apis", reason)
    if found is Intersection.CONFLICT:
        return _refused(at, _CONFLICT, "intersecting operatorgroups provide the same apis", reason)
    if found is Intersection.ADD:
        union = print_apis(surface.provided | provided)
        # Input that no group can hold would be added forever.
        return None if annotations_of(at.group).get(PROVIDED_APIS) == union else Moved(at.status, provided=union)
    if found is Intersection.REMOVE:
        return Moved(at.status, provided=print_apis(surface.provided - provided))
    return None


def _refused(at: _Step, reason: str, message: str, before: str | None) -> Moved:
    if before == _CONFLICT:
        return at.stay()
    return Moved(with_phase(at.status, FAILED, reason, message, at.now), remove_deployments=True)


def _none(at: _Step) -> Moved:
    return at.to(PENDING, "RequirementsUnknown", "requirements not yet checked")


def not_upgradeable(csv: Obj, conditions: Mapping[str, Obj]) -> str:
    """Return why an operator must not be upgraded now, from its OperatorCondition; "" if it may."""
    condition = conditions.get(name_of(csv))
    if condition is None:
        return ""
    for one in dig(condition, "spec", "overrides", default=None) or ():
        if one.get("type") == "Upgradeable":
            free = one.get("status") == "True"
            return "" if free else f"the operator is not upgradeable: {one.get('message', '')}"
    for one in dig(condition, "status", "conditions", default=None) or ():
        if one.get("type") != "Upgradeable":
            continue
        if int(one.get("observedGeneration") or 0) != generation(condition):
            return f'the operatorcondition status "{one["type"]}"="{one.get("status")}" is outdated'
        if one.get("status") == "False":
            return f"the operator is not upgradeable: {one.get('message', '')}"
    return ""


def _pending(at: _Step) -> Moved:
    previous = replaces(at.csv, at.around.csvs)
    if previous is not None and (why := not_upgradeable(previous, at.around.conditions)):
        return at.to(PENDING, "OperatorConditionNotUpgradeable", f"operator is not upgradeable: {why}", force=False)
    required = judge(at.csv, at.around.needs)
    if required.invalid:
        return at.to(FAILED, "InvalidInstallStrategy", f"install strategy invalid: {required.invalid}")
    at = at.noting(required)
    if not required.met:
        message = "one or more requirements couldn't be found"
        return at.to(PENDING, "RequirementsNotMet", message, error="requirements were not met", force=False)
    if problem := _webhook_problem(at.csv):
        return at.to(FAILED, "InvalidWebhookDescription", problem, force=False)
    for conflict, text in (
        (_owned_by_another(at.csv, at.around.csvs), "conflicting CRD owner in namespace"),
        (_serves_for_another(at.csv, at.around), "unable to adopt APIService"),
    ):
        if conflict:
            return at.to(FAILED, "OwnerConflict", text, error=text)
    if previous is not None and dig(previous, "status", "phase", default="") != REPLACING:
        return at.stay()
    return at.to(READY, "AllRequirementsMet", "all requirements found, attempting install")


def _webhook_problem(csv: Obj) -> str:
    names: set[str] = set()
    for described in dig(csv, "spec", "webhookdefinitions", default=None) or ():
        name = str(described.get("generateName") or "")
        if name in names:
            return "CSV contains repeated WebhookDescription name"
        names.add(name)
        for rule in described.get("rules") or ():
            if problem := _rule_problem(rule):
                return problem
    return ""


def _rule_problem(rule: Obj) -> str:
    groups, resources = set(rule.get("apiGroups") or ()), set(rule.get("resources") or ())
    if "*" in groups:
        return "webhook rules cannot include all groups"
    if "operators.coreos.com" in groups:
        return "webhook rules cannot include the OLM group"
    guarded = {"*", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    if "admissionregistration.k8s.io" in groups and resources & guarded:
        return "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
    return ""


def _owned_by_another(csv: Obj, csvs: Mapping[str, Obj]) -> bool:
    """Return whether an operator outside of its chain of replacements owns one of its definitions."""

    def owned(one: Obj) -> set[str]:
        described = dig(one, "spec", "customresourcedefinitions", "owned", default=None) or ()
        return {str(each.get("name")) for each in described}

    chain, mine = replacement_chain(csv, csvs), owned(csv)
    return any(name not in chain and mine & owned(one) for name, one in csvs.items())


def _serves_for_another(csv: Obj, around: Around) -> bool:
    """Return whether an API service that it owns belongs to another operator (``IsAPIServiceAdoptable``)."""
    for one in dig(csv, "spec", "apiservicedefinitions", "owned", default=None) or ():
        service = around.needs.api_services.get(f"{one.get('version')}.{one.get('group')}")
        if service is None:
            continue
        marks = labels_of(service)
        owner = around.csvs.get(marks.get(OWNER, ""))
        left = dig(owner or {}, "status", "phase", default="") in (REPLACING, DELETING)
        mine = {name_of(csv), str(dig(csv, "spec", "replaces", default="") or "")} - {""}
        ours = marks.get(OWNER_KIND) == "ClusterServiceVersion" and marks.get(OWNER_NAMESPACE) == namespace_of(csv)
        if not ours or (marks.get(OWNER) not in mine and not left):
            return True
    return False


def _ready(at: _Step) -> Moved:
    if problem := strategy_problem(at.csv):
        return at.to(FAILED, "InvalidInstallStrategy", f"install strategy invalid: {problem}")
    if at.around.serving is not None and (problem := conversion_problem(at.csv, at.around.serving.definitions)):
        return Moved(install_failed(at.csv, problem, at.now))
    message = "waiting for install components to report healthy"
    return Moved(with_phase(at.status, INSTALLING, "InstallSucceeded", message, at.now), install=True)


def install_failed(csv: Obj, error: str, now: datetime, *, forbidden: bool = False) -> Obj:
    """Return the status when a Deployment could not be written in phase InstallReady; ``forbidden``: for want of
    rights, which is not tried again."""
    status = csv.get("status") or {}
    if forbidden:
        said = f"install strategy failed: install strategy failed: {error}"
        return with_phase(status, FAILED, NO_RETRY, said, now)
    return with_phase(status, FAILED, "InstallComponentFailed", f"install strategy failed: {error}", now)


def _checked(at: _Step, phase: str, reason: str) -> tuple[Moved, bool]:
    """Look whether all is up (``updateInstallStatus``); tells whether it is not."""
    authorities = known_authorities(at.csv, at.around.serving) if at.around.serving is not None else {}
    if authorities is None:
        return at.to(PENDING, "NeedsReinstall", "calculated deployment install is bad"), False
    missing = check_installed(certified(at.csv, authorities), at.around.deployments, at.around.config)
    if (missing is None or not missing.unrecoverable) and (unserved := _unserved(at, phase, reason)):
        return unserved, True
    if missing is None:
        message = "install strategy completed with no errors"
        return at.to(SUCCEEDED, "InstallSucceeded", message, force=False), False
    if missing.unrecoverable:
        text = f"install failed: {missing.message}"
        return at.to(FAILED, "InstallCheckFailed", text, force=False), True
    where = READY if missing.reason in (UPDATED, MISSING_ANNOTATIONS) else phase
    return at.to(where, reason, f"installing: {missing.message}", force=False), True


def _unserved(at: _Step, phase: str, reason: str) -> Moved | None:
    """Return what follows while aggregated APIs do not answer or webhooks are not registered; None: all are."""
    if at.around.serving is None:
        return None
    if not apis_available(at.csv, at.around.serving):
        return at.to(phase, reason, "apiServices not installed", force=False)
    there, error = webhooks_available(at.csv, at.around.serving)
    if error:
        return at.to(READY, reason, f"Webhook install failed: {error}", force=False)
    return None if there else at.to(phase, reason, "webhooks not installed", force=False)


def _outdated(at: _Step) -> bool:
    """Return whether a certificate is gone, or ends soon (``ShouldRotateCerts``)."""
    serving = at.around.serving
    if serving is None:
        return False
    if any(secret_name(one) not in serving.secrets for one in served_by(at.csv)):
        return True
    ends = time_or_none(at.status.get("certsRotateAt"))
    return ends is not None and at.now >= ends


def _installing(at: _Step) -> Moved:
    if problem := strategy_problem(at.csv):
        return at.to(FAILED, "InvalidInstallStrategy", f"install strategy invalid: {problem}")
    moved, failed = _checked(at, INSTALLING, "InstallWaiting")
    since = time_or_none(moved.status.get("lastTransitionTime"))
    if failed and since is not None and at.now - since >= INSTALL_TIMEOUT:
        return Moved(with_phase(moved.status, FAILED, "InstallCheckFailed", "install timeout", at.now))
    return moved


def _succeeded(at: _Step) -> Moved:
    replacement = replaced_by(at.csv, at.around.csvs)
    if replacement is not None:
        return at.to(REPLACING, "BeingReplaced", f"being replaced by csv: {name_of(replacement)}")
    if problem := strategy_problem(at.csv):
        return at.to(FAILED, "InvalidInstallStrategy", f"install strategy invalid: {problem}")
    serving = at.around.serving
    if serving is not None and (problem := api_problem(at.csv, serving, at.around.deployments)):
        return at.to(FAILED, "APIServiceResourceIssue", problem)
    if _outdated(at):
        return at.to(PENDING, "NeedsCertRotation", "CSV owns resources that require a cert refresh")
    required = judge(at.csv, at.around.needs)
    if not required.met:
        return at.noting(required).to(FAILED, "RequirementsNotMet", "requirements no longer met")
    return _checked(at, FAILED, "ComponentUnhealthy")[0]


def _failed(at: _Step) -> Moved:
    replacement = replaced_by(at.csv, at.around.csvs)
    if fails_forward(at.group) and replacement is not None:
        text = f"Fail Forward is enabled, allowing {FAILED} csv to be replaced by csv: {name_of(replacement)}"
        return at.to(REPLACING, "BeingReplaced", text)
    if problem := strategy_problem(at.csv):
        return at.to(FAILED, "InvalidInstallStrategy", f"install strategy invalid: {problem}", force=False)
    reason = at.status.get("reason") or ""
    freed = {
        **dict.fromkeys(_GROUP_REASONS, "InstallModes now support target namespaces"),
        _CONFLICT: "OperatorGroup no longer intersecting with conflicting owner",
        _STATIC: "static OperatorGroup and intersecting groups now support providedAPIs",
    }
    if reason in freed:
        return at.to(PENDING, "RequirementsUnknown", freed[reason])
    required = judge(at.csv, at.around.needs)
    if not required.met:
        return at.noting(required).to(PENDING, "RequirementsNotMet", "requirements not met")
    serving = at.around.serving
    if serving is not None and (problem := api_problem(at.csv, serving, at.around.deployments)):
        return at.to(PENDING, "APIServiceResourcesNeedReinstall", problem)
    if _outdated(at):
        return at.to(PENDING, "NeedsCertRotation", "owned APIServices need cert refresh")
    return _checked(at, PENDING, "NeedsReinstall")[0]


def _replacing(at: _Step) -> Moved:
    if replaces(at.csv, at.around.csvs) is not None:
        return at.stay()
    following = replaced_by(at.csv, at.around.csvs)
    if following is not None and fails_forward(at.group):
        following = newest(following, at.around.csvs)
    if following is None:
        return at.stay("marked as replacement, but no replacement CSV found in cluster")
    if dig(following, "status", "phase", default="") != SUCCEEDED:
        return at.stay()
    message = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
    return at.to(DELETING, "Replaced", message)


def _deleting(at: _Step) -> Moved:
    return Moved(at.status, delete=True)


_PHASES: Mapping[str, Callable[[_Step], Moved]] = {
    NONE: _none,
    PENDING: _pending,
    READY: _ready,
    INSTALLING: _installing,
    SUCCEEDED: _succeeded,
    FAILED: _failed,
    REPLACING: _replacing,
    DELETING: _deleting,
}

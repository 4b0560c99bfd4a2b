"""Jobs and CronJobs: the generated selector, and the immutable parts of a Job.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/batch/validation`` and ``pkg/registry/batch/job/strategy.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import go_text, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import (
    IMMUTABLE,
    immutable,
    label_selector_causes,
    natural_numbers,
    selector_or_none,
)
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.pods.podspec import pod_template_causes, template_labels
from syncline.cluster.validation.pods.podwarnings import pod_name_warnings, template_warnings
from syncline.cluster.validation.workloads.cron import schedule_problem, time_zone_problem
from syncline.cluster.validation.workloads.jobpolicies import INDEXED_ONLY, failure_policy_causes, success_policy_causes
from syncline.cluster.validation.workloads.jobstatus import job_status_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

CONTROLLER_UID, LEGACY_CONTROLLER_UID = "batch.kubernetes.io/controller-uid", "controller-uid"
JOB_NAME, LEGACY_JOB_NAME = "batch.kubernetes.io/job-name", "job-name"
MISMATCH = "`selector` does not match template `labels`"
COUNTS = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    *("backoffLimitPerIndex", "maxFailedIndexes"),
)
MAX_INDEXES = 100_000
MAX_WITH_MANY = 10_000
CRON_NAME_LENGTH = 52
MAX_MANAGED_BY = 63
SCHEDULING_FIELDS = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields that a queue controller may set in the template of a suspended Job."""


class JobKind(Kind):
    pod_spec = ("spec", "template", "spec")
    has_status = True
    has_generation = True
    empty_status: ClassVar[Obj | None] = {}

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        if spec_of(obj).get("manualSelector") is not True:
            _generate_selector(obj, ctx)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return _generated_selector_causes(obj) + _whole_spec_causes(spec_of(obj)) + _hostname_causes(obj)

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        """Validate the spec a second time, as in Kubernetes (ValidateJobSpecUpdate)."""
        fresh, before = spec_of(new), spec_of(old)
        causes = metadata_update_causes(new, old) + _whole_spec_causes(fresh)
        causes += _completions_causes(fresh, before)
        causes += immutable(fresh, before, "spec", "selector")
        if _fixed_template(fresh, old) != _fixed_template(before, old):
            suspended = before.get("suspend") is True and _resources_may_change(old)
            where, value = ("spec.template.spec", dig(fresh, "template", "spec")) if suspended else ("", None)
            causes.append(invalid(where or "spec.template", value if where else fresh.get("template"), IMMUTABLE))
        kept = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
        return causes + immutable(fresh, before, "spec", *kept)

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return job_status_causes(new, old)

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        """Skip labels that the Job takes from its template, where they are validated."""
        causes, name = super().whole_causes(obj), str(dig(obj, "metadata", "name", default=""))
        return [one for one in causes if one.field != "metadata.labels" or go_text(name) not in one.message]

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None:
            return []
        return pod_name_warnings(new) + job_spec_warnings(spec_of(new), "spec")


def _generate_selector(obj: Obj, ctx: Context) -> None:
    """Label the template with the Job's uid and name, and select by the uid."""
    metadata, spec = obj.setdefault("metadata", {}), obj.setdefault("spec", {})
    uid, name = metadata.setdefault("uid", ctx.entropy.uid()), metadata.get("name", "")
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    shared = metadata.get("labels") is not None and metadata["labels"] is template.get("labels")
    labels = dict(template.get("labels") or {})
    # Validation refuses a label that the user set.
    labels.setdefault(LEGACY_JOB_NAME, name)
    labels.setdefault(JOB_NAME, name)
    labels.setdefault(LEGACY_CONTROLLER_UID, uid)
    labels.setdefault(CONTROLLER_UID, uid)
    template["labels"] = labels
    selector = spec["selector"] = dict(spec.get("selector") or {})
    selector["matchLabels"] = {CONTROLLER_UID: uid} | (selector.get("matchLabels") or {})
    if shared or not metadata.get("labels"):
        # A Job without labels gets its template's (SetDefaults_Job on decoding).
        metadata["labels"] = dict(labels)


def _generated_selector_causes(obj: Obj) -> list[FieldCause]:
    spec, metadata = spec_of(obj), obj.get("metadata") or {}
    if spec.get("manualSelector") is True or spec.get("selector") is None:
        return []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    expected = {LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name, CONTROLLER_UID: uid, JOB_NAME: name}
    causes: list[FieldCause] = []
    labels = template_labels(spec) or {}
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            causes.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            causes.append(invalid(path, labels, f"must be '{value}'"))
    selector = selector_or_none(spec["selector"])
    if selector is not None and not selector.matches(expected):
        causes.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return causes


def _hostname_causes(obj: Obj) -> list[FieldCause]:
    """Validate an indexed Job's name, which with an index becomes its pods' host name."""
    spec, name = spec_of(obj), str(dig(obj, "metadata", "name", default=""))
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed" or not isinstance(completions, int) or completions <= 0:
        return []
    last = f"{name}-{completions - 1}"
    why = f"will not able to create pod with invalid DNS label: {last}"
    return [invalid("metadata.name", name, why)] if names.dns_label(last) else []


def _whole_spec_causes(spec: Obj) -> list[FieldCause]:
    causes = _spec_causes(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        causes.append(required("spec.selector"))
    causes += label_selector_causes(selector, "spec.selector")
    parsed = selector_or_none(selector)
    if parsed is not None and not parsed.matches(template_labels(spec)):
        causes.append(invalid("spec.template.metadata.labels", template_labels(spec), MISMATCH))
    return causes


def _indexed_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    completions, parallelism, failed = (spec.get(key) for key in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > MAX_INDEXES:
        why = f"must be less than or equal to {MAX_INDEXES} when completion mode is Indexed"
        yield invalid(f"{path}.parallelism", parallelism, why)
    if failed is not None and completions is not None and failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > MAX_INDEXES:
        yield invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MAX_INDEXES}")
    if completions is not None and completions > MAX_INDEXES and spec.get("backoffLimitPerIndex") is not None:
        yield from _MANY_INDEXES(spec, path)


_FEW = r.at_most(
    MAX_WITH_MANY,
    f"must be less than or equal to {MAX_WITH_MANY} when completions are above {MAX_INDEXES} and used with backoff "
    "limit per index",
)
_MANY_INDEXES = r.every(
    r.field("parallelism", _FEW),
    r.field("maxFailedIndexes", _FEW),
    r.demand(
        r.lacks("maxFailedIndexes"), "maxFailedIndexes", f"must be specified when completions is above {MAX_INDEXES}"
    ),
)
"""Limits for more than a hundred thousand indexes."""
_ONLY_INDEXED = r.must(lambda _: False, INDEXED_ONLY)


def _restart_policy_causes(spec: Obj, at: str) -> Iterator[FieldCause]:
    """Treat ``Always`` as missing, because defaulting sets it."""
    policy, path = dig(spec, "template", "spec", "restartPolicy"), f"{at}.template.spec.restartPolicy"
    if policy == "Always":
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _managed_by(name: str, path: str) -> Iterator[FieldCause]:
    for part, problem in names.domain_prefixed_path(name):
        yield invalid(path, part, problem)
    if len(name) > MAX_MANAGED_BY:
        yield too_long(path, MAX_MANAGED_BY)


_spec_causes = r.every(
    r.natural(*COUNTS),
    r.field("completionMode", r.choice("NonIndexed", "Indexed")),
    r.when(
        r.where(completionMode="Indexed"),
        _indexed_causes,
        otherwise=r.every(r.field("backoffLimitPerIndex", _ONLY_INDEXED), r.field("maxFailedIndexes", _ONLY_INDEXED)),
    ),
    r.demand(
        lambda spec: spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None,
        "backoffLimitPerIndex",
        "when maxFailedIndexes is specified",
    ),
    lambda spec, path: failure_policy_causes(spec, f"{path}.podFailurePolicy"),
    lambda spec, path: success_policy_causes(spec, f"{path}.successPolicy"),
    r.when(
        r.given("podFailurePolicy"),
        r.field("podReplacementPolicy", r.choice("Failed")),
        otherwise=r.field("podReplacementPolicy", r.choice("Failed", "TerminatingOrFailed")),
    ),
    r.field("managedBy", _managed_by),
    r.always("template", pod_template_causes),
    _restart_policy_causes,
)
"""Rules for a Job's spec without its selector, as in a CronJob's template."""


def _completions_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    """Allow indexed Jobs to change completions and parallelism together."""
    if fresh.get("completionMode") != "Indexed":
        return immutable(fresh, before, "spec", "completions")
    completions = fresh.get("completions")
    if completions == before.get("completions") or completions is None or completions == fresh.get("parallelism"):
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _fixed_template(spec: Obj, old: Obj) -> Any:
    """Return the immutable part of the template: all of it, or for a Job suspended before its start, all but scheduling
    and resources."""
    template = spec.get("template")
    if not _resources_may_change(old) or not isinstance(template, dict):
        return template
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in SCHEDULING_FIELDS}
    for key in ("containers", "initContainers"):
        if pod.get(key):
            pod[key] = [{name: value for name, value in one.items() if name != "resources"} for one in pod[key]]
    affinity = {key: value for key, value in (pod.pop("affinity", None) or {}).items() if key != "nodeAffinity"}
    if affinity:
        pod["affinity"] = affinity
    return {"spec": pod}


def _resources_may_change(old: Obj) -> bool:
    """Return whether a queue may still change a suspended Job without pods (shouldAllowMutablePodTemplate)."""
    status = old.get("status") or {}
    held = any((one.get("type"), one.get("status")) == ("Suspended", "True") for one in status.get("conditions") or ())
    waiting = not status.get("startTime") or held
    return spec_of(old).get("suspend") is True and waiting and not status.get("active")


def job_spec_warnings(spec: Obj, path: str) -> list[str]:
    """Return Kubernetes' warnings about a Job's spec (``pkg/api/job/warnings.go``)."""
    warnings: list[str] = []
    many = (spec.get("completions") or 0) > MAX_INDEXES and (spec.get("parallelism") or 0) > MAX_WITH_MANY
    if spec.get("completionMode") == "Indexed" and many:
        warnings.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return warnings + template_warnings(spec.get("template"), f"{path}.template")


class CronJobKind(Kind):
    pod_spec = ("spec", "jobTemplate", "spec", "template", "spec")
    has_status = True
    has_generation = True
    empty_status: ClassVar[Obj | None] = {}
    revalidates = False
    judged_again = True

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        causes = super().whole_causes(obj)
        name = dig(obj, "metadata", "name", default="")
        if len(name) > CRON_NAME_LENGTH:
            # Its Jobs append eleven characters, and their names must fit in a label.
            causes.append(invalid("metadata.name", name, f"must be no more than {CRON_NAME_LENGTH} characters"))
        return causes

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _SCHEDULE(spec, "spec")
        job, path = dig(spec, "jobTemplate", "spec", default={}), "spec.jobTemplate.spec"
        causes += _spec_causes(job, path)
        if job.get("selector") is not None:
            causes.append(invalid(f"{path}.selector", job["selector"], "`selector` will be auto-generated"))
        if job.get("manualSelector"):
            causes.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
        return causes + natural_numbers(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        job, path = dig(new, "spec", "jobTemplate", "spec", default={}), "spec.jobTemplate.spec"
        if old is None:
            return pod_name_warnings(new) + job_spec_warnings(job, path)
        return [] if job == dig(old, "spec", "jobTemplate", "spec") else job_spec_warnings(job, path)


def _schedule(schedule: str, path: str) -> Iterator[FieldCause]:
    if "TZ" in schedule:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    if problem := schedule_problem(schedule):
        yield invalid(path, schedule, problem)


def _time_zone(zone: str, path: str) -> list[FieldCause]:
    problem = time_zone_problem(zone) if zone else "timeZone must be nil or non-empty string"
    return [invalid(path, zone, problem)] if problem else []


_SCHEDULE = r.every(
    r.need("schedule", _schedule),
    r.field("timeZone", _time_zone),
    r.natural("startingDeadlineSeconds"),
    r.need("concurrencyPolicy", r.choice("Allow", "Forbid", "Replace")),
)

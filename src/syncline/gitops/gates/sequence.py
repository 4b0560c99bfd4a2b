"""Jobs that wait for an object in a shell loop, as cluster groups have them; pure.

A default ``sequenceJob`` needs no pod: with ``syncline.dev/sequence-job: wait`` its wait becomes a gate. Any other Job
stays; what it waits for is said where its command can be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from syncline.clustergroup.defaults import SEQUENCE_IMAGE
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, gvk_of

SEQUENCE_JOB: Final = "syncline.dev/sequence-job"
"""Annotation of a Subscription or an Application: ``wait``."""
SUFFIX: Final = "-sequencejob"
MAX_SCRIPT: Final = 4000
_LOOP = re.compile(
    r"\b(?:oc|kubectl)\s+get\s+(?P<kind>[A-Za-z][A-Za-z0-9.-]{0,200})(?:\s+|/)(?P<name>[a-z0-9][-a-z0-9.]{0,250})"
    r"(?:\s+(?:-n|--namespace)[\s=](?P<namespace>[a-z0-9][-a-z0-9]{0,62}))?\s*(?:&&\s*break|>|;\s*do)"
)


@dataclass(frozen=True, slots=True)
class Awaited:
    """``kind``: as ``oc get`` takes it. ``namespace``: empty, the Job's own."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f' in {self.namespace}' if self.namespace else ''}"

    def ref(self, kinds: KindTable, namespace: str) -> ObjectRef | None:
        """Return the object; None: the API serves no such resource (yet)."""
        info = _resource(kinds, self.kind)
        if info is None:
            return None
        return ObjectRef(*info.group_kind, (self.namespace or namespace) if info.namespaced else "", self.name)


def awaited_by(job: Obj) -> Awaited | None:
    """Return what the loop in a Job's command waits for; None: the command cannot be read."""
    found = _LOOP.search(_script(job))
    return Awaited(found["kind"], found["name"], found["namespace"] or "") if found else None


def is_default(job: Obj) -> bool:
    """Return whether a Job has image and command of the chart; any other one stays a Job."""
    awaited = awaited_by(job)
    if awaited is None or dig(_container(job), "image") != SEQUENCE_IMAGE:
        return False
    from syncline.clustergroup.objects.subscriptions import waiting_script  # with the engine of templates

    fields = {"resourceType": awaited.kind, "resourceName": awaited.name, "resourceNamespace": awaited.namespace}
    return _script(job) == waiting_script(fields)


def is_job(obj: Obj) -> bool:
    return gvk_of(obj).group_kind == ("batch", "Job")


def _container(job: Obj) -> Any:
    listed = dig(job, "spec", "template", "spec", "containers") or ()
    return listed[0] if isinstance(listed, list) and len(listed) == 1 else {}


def _script(job: Obj) -> str:
    """Return the text of ``SHELL -c TEXT``; empty for another command."""
    container = _container(job)
    words = [*(dig(container, "command") or ()), *(dig(container, "args") or ())]
    if len(words) != 3 or words[1] != "-c" or not isinstance(words[2], str) or len(words[2]) > MAX_SCRIPT:
        return ""
    return words[2] if str(words[0]).rpartition("/")[2] in ("bash", "sh") else ""


def _resource(kinds: KindTable, name: str) -> ResourceInfo | None:
    """Return the resource that ``oc get NAME`` means: plural, singular, kind or short name, with a group or without."""
    resource, _, group = name.lower().partition(".")
    found = [
        info
        for info in kinds.served.values()
        if resource in (info.plural, info.singular, info.kind.lower(), *info.short_names)
        and (not group or group in (info.group, f"{info.version}.{info.group}"))
    ]
    return min(found, key=lambda info: (info.group, info.kind), default=None)

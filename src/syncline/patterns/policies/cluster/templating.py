"""The objects of a policy's templates on its cluster: which to create, change or delete, and what keeps one from it
(:func:`judge`); pure. Rules and texts of upstream's template sync."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from syncline.control.plan import Create, Delete, Patch, Replace
from syncline.kube.kinds.governance import (
    CERTIFICATE_POLICY,
    CONFIGURATION_POLICY,
    GROUP,
    OPERATOR_POLICY,
    certificate_policy_crd,
    configuration_policy_crd,
    operator_policy_crd,
)
from syncline.kube.objects import (
    GVK,
    Obj,
    annotations_of,
    copied,
    dig,
    gvk_of,
    labels_of,
    meta,
    name_of,
    owner_references,
    uid_of,
)
from syncline.kube.schema.custom.structural import fill_defaults
from syncline.kube.schema.model import Schema
from syncline.patterns.policies.cluster.details import latest_message
from syncline.patterns.policies.names import CLUSTER_NAME, CLUSTER_NAMESPACE, HUB_ERROR, PARENT

TEMPLATE_KINDS: Final = {one.kind: one for one in (CERTIFICATE_POLICY, CONFIGURATION_POLICY, OPERATOR_POLICY)}
UNIQUE: Final = "All policy-template names must be unique within a policy"
_SCHEMAS: Final = {
    gvk: Schema.from_openapi(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], resource=True)
    for gvk, crd in (
        (CERTIFICATE_POLICY, certificate_policy_crd()),
        (CONFIGURATION_POLICY, configuration_policy_crd()),
        (OPERATOR_POLICY, operator_policy_crd()),
    )
}


@dataclass(frozen=True, slots=True)
class Dependency:
    """``compliance``: what is asked of it; ``state``: what it reports; None: it is not there."""

    kind: str
    name: str
    compliance: str
    state: str | None = None

    @property
    def met(self) -> bool:
        return self.state == self.compliance


@dataclass(frozen=True, slots=True)
class Entry:
    """One template. ``live``: its object; ``mapped``: its kind is served; ``needs``: its dependencies; ``conflict``:
    the name of one that is asked to be in two states."""

    index: int
    raw: Obj = field(repr=False)
    live: Obj | None = field(default=None, repr=False)
    mapped: bool = True
    needs: tuple[Dependency, ...] = ()
    conflict: str = ""

    @property
    def definition(self) -> Obj:
        found = self.raw.get("objectDefinition")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """Its name in the status of the policy."""
        usable = gvk_of(self.definition).kind and not self.conflict
        return (name_of(self.definition) if usable else "") or f"template-{self.index}"


@dataclass(frozen=True, slots=True)
class Judged:
    """What one template needs. ``said``: the message of a problem, or of a wait, for the status of the policy."""

    writes: tuple[Any, ...] = ()
    said: str = ""
    foreign: bool = False
    """The object belongs to another policy: its history is not ours."""


def judge(policy: Obj, entry: Entry, details: Sequence[Obj], cluster: str) -> Judged:
    """Judge one template of ``policy``, the copy on the cluster."""
    definition, gvk = entry.definition, gvk_of(entry.definition)
    error = _problem(entry, gvk)
    if error:
        return _refused(error)
    live, name = entry.live, name_of(definition)
    failed = [one for one in entry.needs if not one.met]
    if failed:
        own = live is not None and _is_own(live, policy)
        gone = (Delete.of(live, "its dependencies are not satisfied"),) if live is not None and own else ()
        return Judged(gone, _pending(failed, ignored=bool(entry.raw.get("ignorePending"))))
    if hub_error := annotations_of(definition).get(HUB_ERROR):
        return Judged(_withdrawn(live, policy), f"NonCompliant; template-error; {hub_error}")
    wanted = _wanted(policy, definition, cluster)
    if live is None:
        return Judged((Create(wanted, f"policy {name_of(policy)} has it"),))
    if not _is_own(live, policy):
        owner = _owner(live)
        where = f"in policy {owner}" if owner else "outside of a Policy"
        text = f"Template name must be unique. Policy template with kind: {gvk.kind} name: {name} already exists"
        return replace(_refused(f"{text} {where}"), foreign=True)
    if not _equivalent(wanted, live):
        return Judged((_updated(wanted, live),))
    return Judged(_reset(live, latest_message(details, entry.index)))


def _problem(entry: Entry, gvk: GVK) -> str:
    if not gvk.kind:
        return "Failed to decode policy template with err: Object 'Kind' is missing"
    if entry.conflict:
        text = f"dependency on {entry.conflict} has conflicting compliance states"
        return f"Failed to decode policy template with err: {text}"
    if not name_of(entry.definition):
        return f"Failed to parse or get name from policy template at index {entry.index}"
    text = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
    if not entry.mapped:
        return "Mapping not found, check if you have the CRD deployed: the resource version was not found: " + text
    if TEMPLATE_KINDS.get(gvk.kind) != gvk:
        return f"policy-template kind is not supported: {text}"
    return ""


def _refused(text: str) -> Judged:
    return Judged(said=f"NonCompliant; template-error; {text}")


def _pending(failed: Sequence[Dependency], *, ignored: bool) -> str:
    names = ", ".join(sorted(f"{one.kind} {one.name}" for one in failed))
    verb = "is" if len(failed) == 1 else "are"
    text = f"Dependencies were not satisfied: {len(failed)} {verb} still pending ({names})"
    return f"Compliant; {text} but ignorePending is true" if ignored else f"Pending; {text}"


def _withdrawn(live: Obj | None, policy: Obj) -> tuple[Any, ...]:
    """Return the deletion of an object whose hub templates fail now; what it has brought stays."""
    if live is None or not _is_own(live, policy):
        return ()
    why = "its hub templates cannot be resolved"
    if dig(live, "spec", "pruneObjectBehavior") in (None, "None"):
        return (Delete.of(live, why),)
    keep = {"spec": {"pruneObjectBehavior": "None"}}
    return Patch(gvk_of(live), str(meta(live).get("namespace")), name_of(live), keep, why), Delete.of(live, why)


# -- the object --------------------------------------------------------------------------------------------------------


def _wanted(policy: Obj, definition: Obj, cluster: str) -> Obj:
    """Return the object of a template, with the labels, the owner and the remediation action of its policy."""
    metadata = {key: one for key, one in meta(definition).items() if key in ("name", "annotations", "labels")}
    name = labels_of(policy).get(CLUSTER_NAME, cluster)
    labels = {
        **(metadata.get("labels") or {}),
        PARENT: name_of(policy),
        "cluster-name": name,
        CLUSTER_NAME: name,
        "cluster-namespace": cluster,
        CLUSTER_NAMESPACE: cluster,
    }
    made: Obj = copied({key: one for key, one in definition.items() if key not in ("metadata", "status")})
    made["metadata"] = {**metadata, "labels": labels, "namespace": cluster, "ownerReferences": [_reference(policy)]}
    spec = made.get("spec")
    if isinstance(spec, dict):
        own, given = spec.get("remediationAction"), dig(policy, "spec", "remediationAction")
        if isinstance(own, str) and own.lower() == "informonly":
            spec["remediationAction"] = "inform"
        elif given:
            spec["remediationAction"] = given
    return made


def _reference(policy: Obj) -> Obj:
    return {
        "apiVersion": policy.get("apiVersion"),
        "kind": policy.get("kind"),
        "name": name_of(policy),
        "uid": uid_of(policy),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _owner(live: Obj) -> str:
    named = next((str(one.get("name")) for one in owner_references(live)), "")
    return named or labels_of(live).get(PARENT, "")


def _is_own(live: Obj | None, policy: Obj) -> bool:
    return live is not None and _owner(live) == name_of(policy)


def _equivalent(wanted: Obj, live: Obj) -> bool:
    if defaulted(wanted).get("spec") != defaulted(live).get("spec"):
        return False
    if any(annotations_of(live).get(key) != one for key, one in annotations_of(wanted).items()):
        return False
    if any(labels_of(live).get(key) != one for key, one in labels_of(wanted).items()):
        return False
    return any(one.get("uid") == dig(wanted, "metadata", "ownerReferences", 0, "uid") for one in owner_references(live))


def defaulted(obj: Obj) -> Obj:
    """Return an object of a template kind with the defaults of its definition."""
    definition = _SCHEMAS.get(gvk_of(obj))
    if definition is None:
        return obj
    return fill_defaults(copied(obj), definition)


def _updated(wanted: Obj, live: Obj) -> Replace:
    metadata = {
        **meta(live),
        "labels": {**labels_of(live), **labels_of(wanted)},
        "annotations": annotations_of(wanted),
        "ownerReferences": wanted["metadata"]["ownerReferences"],
    }
    return Replace({**live, "metadata": metadata, "spec": wanted.get("spec") or {}}, "its policy has changed")


def _reset(live: Obj, message: str) -> tuple[Patch, ...]:
    """Return what makes the object report again, when the policy still tells of a problem that is over."""
    if "template-error;" not in message and not message.startswith("Pending;"):
        return ()
    if gvk_of(live).group != GROUP or not dig(live, "status", "compliant"):
        return ()
    place = str(meta(live).get("namespace"))
    body: Mapping[str, Any] = {"status": {"compliant": None}}
    return (Patch(gvk_of(live), place, name_of(live), body, "it is to report again", subresource="status"),)

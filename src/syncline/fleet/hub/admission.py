"""Admission of ManagedClusters and bindings of sets: what is completed, refused, and which rights are needed; pure.

Rules and sentences: ``pkg/registration/webhook`` of upstream (reference ocm-pull-model §1.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from syncline.base.clock import format_time, time_or_none
from syncline.fleet.hub.clustersets.defaults import DEFAULT
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.text.names import dns_label

RESERVED: Final = "managed-clusters"
_GROUP: Final = "cluster.open-cluster-management.io"


class Refused(ValueError):
    """An object that is not admitted; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Need:
    """A right that the user must have: the spec of its SubjectAccessReview, and the sentence if it is denied."""

    review: Obj
    refusal: str


def completed(cluster: Obj, old: Obj | None, now: datetime) -> Obj:
    """Return a ManagedCluster with the times of its taints and with a set. ``old``: the state before, None if the
    cluster is new. Raises :class:`Refused` if the user set the time of a taint in an update."""
    before: dict[str, Obj] = {}
    for one in dig(old, "spec", "taints") or ():
        before.setdefault(str(one.get("key")), one)
    taints, refused = [], []
    for taint in dig(cluster, "spec", "taints") or ():
        live, given = before.get(str(taint.get("key"))), time_or_none(taint.get("timeAdded"))
        if old is not None and live is not None and _content(live) == _content(taint):
            if time_or_none(live.get("timeAdded")) != given:
                refused.append(taint["key"])
            taints.append(taint)
            continue
        if old is not None and given is not None:
            refused.append(taint["key"])
        taints.append({**taint, "timeAdded": format_time(now)})
    if refused:
        raise Refused(f'It is not allowed to set TimeAdded of Taint "{",".join(refused)}".')
    labels = labels_of(cluster)
    metadata = {
        **cluster["metadata"],
        "labels": {**labels, CLUSTER_SET_LABEL: labels.get(CLUSTER_SET_LABEL) or DEFAULT},
    }
    made = {**cluster, "metadata": metadata}
    return {**made, "spec": {**cluster["spec"], "taints": taints}} if taints else made


def _content(taint: Obj) -> tuple[Any, Any]:
    return taint.get("value") or "", taint.get("effect")


def check_cluster(cluster: Obj, old: Obj | None, user: Mapping[str, Any], *, terminating: bool) -> tuple[Need, ...]:
    """Return the rights that a user needs to write a ManagedCluster, in the order in which they are reviewed.

    ``user``: ``userInfo`` of the request; ``terminating``: the namespace of the cluster is being deleted. Raises
    :class:`Refused`.
    """
    _check_content(cluster)
    needs = []
    name = name_of(cluster)
    if name == RESERVED and old is None:
        raise Refused(f'metadata.name "{RESERVED}" is reserved: its group would be that of all agents')
    if dig(cluster, "spec", "hubAcceptsClient") and not dig(old, "spec", "hubAcceptsClient"):
        where = f'managedclusters/accept.{_GROUP} "{name}" is forbidden: '
        if terminating:
            raise Refused(f'{where}cluster namespace "{name}" is terminating')
        review = _review(user, "update", "register.open-cluster-management.io", "managedclusters/accept", name)
        text = f'user "{user.get("username") or ""}" cannot update the HubAcceptsClient field'
        needs.append(Need(review, where + text))
    sets = [labels_of(one).get(CLUSTER_SET_LABEL) or "" for one in (old or {}, cluster)]
    if sets[0] != sets[1]:
        needs.extend(_joining(user, one) for one in sets if one)
    return tuple(needs)


def _joining(user: Mapping[str, Any], name: str) -> Need:
    text = f'user "{user.get("username") or ""}" cannot add/remove a ManagedCluster to/from ManagedClusterSet "{name}"'
    refusal = f'managedclustersets/join.{_GROUP} "{name}" is forbidden: {text}'
    return Need(_review(user, "create", _GROUP, "managedclustersets/join", name), refusal)


def _check_content(cluster: Obj) -> None:
    """Refuse URLs that are not https, and a bad name; without URLs the name is not looked at, as upstream."""
    configs = dig(cluster, "spec", "managedClusterClientConfigs") or ()
    if not configs:
        return
    problems = dns_label(name_of(cluster))
    found = [f"metadata.name format is not correct: {','.join(problems)}"] if problems else []
    urls = [str(one.get("url") or "") for one in configs]
    found += [f'url "{one}" is invalid in client configs' for one in urls if not _https(one)]
    if found:
        raise Refused("\n".join(found))


def _https(url: str) -> bool:
    try:
        return urlsplit(url).scheme == "https"
    except ValueError:
        return False


def check_binding(binding: Obj, old: Obj | None, user: Mapping[str, Any]) -> tuple[Need, ...]:
    """Return the rights that a user needs to write a ManagedClusterSetBinding: a new one needs that of its set. Raises
    :class:`Refused` for one with another name than its set."""
    name = name_of(binding)
    if name != dig(binding, "spec", "clusterSet"):
        raise Refused("The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet")
    if old is not None:
        return ()
    text = f'user "{user.get("username") or ""}" is not allowed to bind cluster set "{name}"'
    refusal = f'managedclustersets/bind.{_GROUP} "{name}" is forbidden: {text}'
    return (Need(_review(user, "create", _GROUP, "managedclustersets/bind", name), refusal),)


def _review(user: Mapping[str, Any], verb: str, group: str, resource: str, name: str) -> Obj:
    plural, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": part, "name": name}
    fields = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
    asked = {key: user[field] for key, field in fields.items() if user.get(field)}
    return {**asked, "resourceAttributes": attributes}

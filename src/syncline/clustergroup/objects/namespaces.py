"""Namespaces and OperatorGroups (reference clustergroup §4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.clustergroup.facts import Facts
from syncline.clustergroup.printing import Printer, is_empty
from syncline.kube.objects import Obj

MANAGED_BY = "argocd.argoproj.io/managed-by"
WHAT = "clusterGroup.namespaces"


def namespaces(facts: Facts) -> list[Obj]:
    """Return a Namespace for each entry that is not disabled."""
    out = facts.printer("core/namespaces")
    given = facts.group.get("namespaces")
    if isinstance(given, dict):
        live = [(name, one) for name, one in out.pairs(given, WHAT) if one is None or not _disabled(out, one)]
        return [_namespace(out, facts, name, one) for name, one in live]
    return [_listed(out, facts, one) for one in out.each(given, WHAT) if not is_empty(one) and not _off(out, one)]


def _disabled(out: Printer, one: Any) -> bool:
    return not is_empty(out.field(one, "disabled", WHAT))


def _off(out: Printer, item: Any) -> bool:
    """Return whether an item of the list form is disabled: the last key of it decides."""
    found = [_disabled(out, one) for _, one in out.pairs(item, WHAT)] if isinstance(item, dict) else []
    return bool(found) and found[-1]


def _listed(out: Printer, facts: Facts, item: Any) -> Obj:
    if not isinstance(item, dict):
        return _namespace(out, facts, item, None)
    made: Obj = {}
    for name, one in out.pairs(item, WHAT):
        made = _namespace(out, facts, name, one)  # of two keys the last one counts
    return made


def _namespace(out: Printer, facts: Facts, name: Any, one: Any) -> Obj:
    labels: Obj = {MANAGED_BY: out.plain(facts.argo_namespace)}
    metadata: Obj = {"name": out.plain(name), "labels": labels}
    if one is not None:
        labels |= out.labelled(out.field(one, "labels", WHAT))
        metadata |= out.annotations(out.field(one, "annotations", WHAT))
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": None}


def operator_groups(facts: Facts) -> list[Obj]:
    """Return an OperatorGroup for each namespace that is not left out."""
    out = facts.printer("core/operatorgroup")
    given, excluded = facts.group.get("namespaces"), facts.group.get("operatorgroupExcludes") or ()
    if isinstance(given, dict):
        return list(_mapped(out, given))
    made: list[Obj] = []
    for item in out.each(given, WHAT):
        if is_empty(item) or _off(out, item) or item in excluded:
            continue
        if isinstance(item, dict):
            made += (found for name, one in out.pairs(item, WHAT) if (found := _of_item(out, name, one)))
        else:
            made.append(_group(out, item, {}, [item]))
    return made


def _mapped(out: Printer, given: Obj) -> Iterator[Obj]:
    for name, one in out.pairs(given, WHAT):
        if is_empty(one) and not isinstance(one, str):
            yield _group(out, name, {}, [name])
        elif not _disabled(out, one) and _wanted(one):
            yield _group(out, name, {}, _targets(out, name, one))


def _of_item(out: Printer, name: str, one: Any) -> Obj:
    out.field(one, "operatorGroup", WHAT)
    if not _wanted(one):
        return {}
    labels = {"labels": out.labelled(one["labels"]) or None} if "labels" in one else {}
    return _group(out, name, {**labels, **out.annotations(one.get("annotations"))}, _targets(out, name, one))


def _wanted(one: Obj) -> bool:
    return "operatorGroup" not in one or not is_empty(one["operatorGroup"])


def _targets(out: Printer, name: str, one: Obj) -> list[Any]:
    """Return the namespaces that its operators watch; none: all of them."""
    return out.each(one["targetNamespaces"], WHAT) if "targetNamespaces" in one else [name]


def _group(out: Printer, name: Any, metadata: Obj, targets: list[Any]) -> Obj:
    made: Obj = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": out.plain(f"{name}-operator-group"), "namespace": out.plain(name), **metadata},
    }
    return {**made, "spec": {"targetNamespaces": [out.plain(one) for one in targets]}} if targets else made

"""Small ApplicationSets, Applications and rows for tables of policies."""

from __future__ import annotations

from typing import Any

from tests.appset.answers import World
from tests.appset.rounds import CONTROL, Table

from syncline.kube.objects import Obj, name_of

FINALIZER = "resources-finalizer.argocd.argoproj.io"
HERE = "https://kubernetes.default.svc"
PARAMETERS = "applicationsetcontroller."


def rows(*names: str, **more: Any) -> Obj:
    """A list generator with a row for each name."""
    return {"list": {"elements": [{"n": name, **more} for name in names]}}


def appset(*generators: Obj, name: str = "set", namespace: str = CONTROL, **given: Any) -> Obj:
    """A set whose template is named by ``n``. ``given``: fields of the spec; ``annotations``, ``finalizers``,
    ``template`` (metadata), ``app`` (spec of the template) and ``status``."""
    metadata: Obj = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    metadata |= {key: given.pop(key) for key in ("annotations", "finalizers", "deletionTimestamp") if key in given}
    template = {"metadata": {"name": "{{n}}", **given.pop("template", {})}, "spec": app_spec() | given.pop("app", {})}
    status = {"status": given.pop("status")} if "status" in given else {}
    spec = {"generators": list(generators), "template": template, **given}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    return {**kind, "metadata": metadata, "spec": spec, **status}


def app_spec(**more: Any) -> Obj:
    source = {"repoURL": "https://git.example/r.git", "targetRevision": "HEAD", "path": "p"}
    return {"project": "default", "source": source, "destination": {"server": HERE, "namespace": "d"}, **more}


def app(name: str, owner: str = "set", namespace: str = CONTROL, **given: Any) -> Obj:
    """An Application as a set makes it. ``given``: fields of metadata; ``spec``, ``status``."""
    spec, status = given.pop("spec", {}), given.pop("status", None)
    metadata: Obj = {"name": name, "namespace": namespace, "uid": f"uid-app-{name}", "finalizers": [FINALIZER], **given}
    if owner:
        reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": owner}
        flags = {"uid": f"uid-{owner}", "controller": True, "blockOwnerDeletion": True}
        metadata["ownerReferences"] = [{**reference, **flags}]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return {**kind, "metadata": metadata, "spec": app_spec(**spec), **({"status": status} if status else {})}


def project(name: str = "default") -> Obj:
    metadata = {"name": name, "namespace": CONTROL}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": {}}


def parameters(**given: str) -> Obj:
    """``argocd-cmd-params-cm``; ``_`` stands for a dot of a key."""
    data = {PARAMETERS + key.replace("_", "."): value for key, value in given.items()}
    metadata = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def table(*objects: Obj, fail: dict[str, str] | None = None, **given: Any) -> Table:
    """A table with the default project. ``given``: what generators are answered (``tree``, ``gitError``, …)."""
    return Table([project(), *objects], fail or {}, World(given))


def names(found: Table) -> list[str]:
    return [name_of(one) for one in found.of("Application")]


def condition(found: Table, kind: str, name: str = "set") -> Obj:
    """The condition of a set; empty: it has none."""
    sets = [one for one in found.of("ApplicationSet") if name_of(one) == name]
    conditions = (sets[0].get("status") or {}).get("conditions") or [] if sets else []
    return next((one for one in conditions if one["type"] == kind), {})


def writes(found: Table, name: str = "set", namespace: str = CONTROL) -> list[str]:
    """The writes of one reconcile, as ``verb NAME``."""
    return sorted(f"{one['verb']} {one['name']}" for one in found.reconcile(name, namespace).writes)

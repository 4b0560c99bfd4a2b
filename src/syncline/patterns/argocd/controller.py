"""The controller of ``ArgoCD`` objects: connects the plan with the cache; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.kinds.validatedpatterns import ARGO_CD
from syncline.kube.objects import GroupKind, Obj, ObjectRef, meta, name_of, namespace_of, ref_of
from syncline.patterns.argocd.instances import Instance, Instances
from syncline.patterns.argocd.plan import RBAC, ArgoObserved, plan_argocd
from syncline.patterns.argocd.settings import config_maps

ARGOCD_CONTROLLER: Final = "argocd"
ARGO_CDS: Final = ARGO_CD.group_kind
CONFIG_MAPS: Final = GroupKind("", "ConfigMap")
ACCOUNTS: Final = GroupKind("", "ServiceAccount")
BINDINGS: Final = (GroupKind(RBAC, "ClusterRoleBinding"), GroupKind(RBAC, "RoleBinding"))


@dataclass(frozen=True, slots=True)
class ArgoSettings:
    """``home``: the control namespace of this process itself. ``cluster_wide``: namespaces whose instance may do
    everything, as the administrator says."""

    home: str = "argocd"
    cluster_wide: frozenset[str] = frozenset({"vp-gitops"})


def argocd_controller(instances: Instances, settings: ArgoSettings) -> Controller[ArgoObserved]:
    """Return the controller."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ArgoObserved | None:
        found = cache.get(ref)
        if found is None:
            return None
        wanted = Instance(ref.namespace, ref.name)
        maps = [
            ObjectRef(*CONFIG_MAPS, ref.namespace, name_of(one)) for one in config_maps(found, source_namespaces=False)
        ]
        account = ObjectRef(*ACCOUNTS, ref.namespace, wanted.account)
        project = ObjectRef(*APP_PROJECT.group_kind, ref.namespace, "default")
        unread = next((why for one in (*maps, account, project) if (why := cache.unread(one))), "")
        age = _age(found)
        others = [one for one in cache.objects(ARGO_CDS, ref.namespace) if _age(one) < age]
        return ArgoObserved(
            found,
            others=tuple(name_of(one) for one in others),
            maps=tuple(one for place in maps if (one := cache.get(place)) is not None),
            account=cache.get(account) is not None,
            bound=_is_bound(cache, wanted),
            project=cache.get(project) is not None,
            cluster_wide=ref.namespace in settings.cluster_wide,
            here=ref.namespace == settings.home,
            running=instances.running(),
            why_not=instances.why_not,
            unread=unread,
        )

    def of_namespace(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.objects(ARGO_CDS, namespace_of(obj))]

    def of_subjects(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        spaces = {str(one.get("namespace") or "") for one in obj.get("subjects") or ()}
        return [ref_of(one) for space in spaces if space for one in cache.objects(ARGO_CDS, space)]

    return Controller(
        name=ARGOCD_CONTROLLER,
        kind=ARGO_CDS,
        observe=observe,
        plan=plan_argocd,
        predicate=spec_differs,
        watches=(
            Watch(ARGO_CDS, of_namespace, spec_differs),
            Watch(CONFIG_MAPS, of_namespace),
            Watch(ACCOUNTS, of_namespace),
            Watch(APP_PROJECT.group_kind, of_namespace, spec_differs),
            *(Watch(kind, of_subjects) for kind in BINDINGS),
        ),
    )


def _age(obj: Obj) -> tuple[str, str]:
    return str(meta(obj).get("creationTimestamp") or ""), name_of(obj)


def _is_bound(cache: Snapshot, wanted: Instance) -> bool:
    subject = ("ServiceAccount", wanted.namespace, wanted.account)
    every = (one for kind in BINDINGS for one in cache.objects(kind, "" if kind is BINDINGS[0] else wanted.namespace))
    return any(
        (one.get("kind"), one.get("namespace"), one.get("name")) == subject
        for binding in every
        for one in binding.get("subjects") or ()
    )

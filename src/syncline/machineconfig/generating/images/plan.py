"""Plans ``99-ROLE-generated-registries`` of every built-in pool; pure.

Source: reference machine-config 1.6, ``syncImageConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.control.plan import Emit, Plan, Stalled
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.machineconfig.generating.making import controller_reference, file_of, made_config, writes
from syncline.machineconfig.generating.runtime.files import RuntimeFile
from syncline.machineconfig.generating.runtime.mirrors import MirrorRules, RegistryError, registries_conf
from syncline.machineconfig.generating.runtime.registries import (
    POLICY_PATH,
    REGISTRIES_PATH,
    policy_json,
    registry_lists,
    search_file,
    wants_registries,
)
from syncline.machineconfig.generating.templates.bases import POLICY_JSON, REGISTRIES_CONF
from syncline.machineconfig.render.rendering import Release

COMPONENT = "machineconfigcontroller-containerruntimeconfigcontroller"
BUILT_IN = "machineconfiguration.openshift.io/mco-built-in"


@dataclass(frozen=True)
class ImagesObserved:
    """The planner's input. ``image``: config.openshift.io Image ``cluster``; without it nothing is planned."""

    image: Obj
    rules: MirrorRules
    controller_config: Obj
    pools: tuple[Obj, ...]
    configs: Mapping[str, Obj]
    release: Release


def plan_images(observed: ImagesObserved) -> Plan:
    """Return the plan of one reconcile."""
    try:
        files, left_out = _files(observed)
    except RegistryError as error:
        fix = "change Image cluster, or the mirror sets"
        event = Emit(observed.image, "RegistriesRefused", f"{error}; {fix}", COMPONENT, warning=True)
        return Plan(((event,),), Stalled(str(error), fix), why=f"registries cannot be written: {error}")
    owner = controller_reference(observed.image)
    roles = sorted(name_of(pool) for pool in observed.pools if BUILT_IN in labels_of(pool))
    wanted = [
        made_config(
            f"99-{role}-generated-registries",
            role,
            observed.release,
            files=[file_of(one.path, one.text) for one in files],
            owner=owner,
        )
        for role in roles
    ]
    changes = writes(wanted, observed.configs, "registries of the cluster")
    why = f"{len(files)} files of registries for {', '.join(roles) or 'no pool'}" + (
        f"; {left_out}" if left_out else ""
    )
    if not changes:
        return Plan(why=why)
    # Upstream only logs omitted settings.
    event = Emit(observed.image, "RegistryNotBlocked", left_out or "", COMPONENT, warning=True)
    return Plan(steps=(changes, (event,)) if left_out else (changes,), why=why)


def _files(observed: ImagesObserved) -> tuple[list[RuntimeFile], str | None]:
    spec: Obj = observed.image.get("spec") or {}
    sources: Obj = spec.get("registrySources") or {}
    release = str(dig(observed.controller_config, "spec", "releaseImage", default="") or "")
    lists = registry_lists(release, spec, observed.rules)
    files = []
    if wants_registries(sources, lists, observed.rules):
        insecure = sources.get("insecureRegistries") or ()
        text = registries_conf(REGISTRIES_CONF, insecure, lists.blocked or (), observed.rules)
        files.append(RuntimeFile(REGISTRIES_PATH, text))
    if lists.policy_blocked is not None or lists.allowed is not None:
        files.append(RuntimeFile(POLICY_PATH, policy_json(POLICY_JSON, lists, release)))
    search = sources.get("containerRuntimeSearchRegistries")
    if search is not None:
        files.append(search_file(search))
    return files, lists.error

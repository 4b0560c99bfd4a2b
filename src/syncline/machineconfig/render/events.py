"""Events of rendering, in upstream's words."""

from __future__ import annotations

from syncline.control.plan import Emit
from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.machineconfig.names import GENERATED_BY, RELEASE

COMPONENT = "machineconfigcontroller-rendercontroller"


def selecting_all(pool: Obj) -> Emit:
    text = "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required."
    return Emit(pool, "SelectingAll", text, COMPONENT, warning=True)


def image_overridden(config: Obj, was: str) -> Emit:
    name, image = name_of(config), config["spec"]["osImageURL"]
    text = f"OSImageURL was overridden via machineconfig in {name} (was: {was} is: {image})"
    return Emit(config, "OSImageURLOverridden", text, COMPONENT)


def rendered(pool: Obj, config: Obj) -> Emit:
    notes = annotations_of(config)
    versions = f"release version: {notes.get(RELEASE, '')}, controller version: {notes.get(GENERATED_BY, '')}"
    text = f"{name_of(config)} successfully generated ({versions})"
    return Emit(pool, "RenderedConfigGenerated", text, COMPONENT)


def refused(pool: Obj, culprit: str, error: str) -> Emit:
    """Return our Event that names the MachineConfig at fault, which upstream's condition does not."""
    text = f"pool {name_of(pool)} keeps its configuration; MachineConfig {culprit}: {error}"
    return Emit(pool, "RenderRefused", text, COMPONENT, warning=True)

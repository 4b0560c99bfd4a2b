"""Image mode: evaluates a pool's MachineOSConfig and MachineOSBuild for its roll-out; pure.

A pool with either of them is *layered*: its nodes get an image together with a config. Source: Machine Config Operator
``canLayeredContinue``, ``isLayeredPoolBuilding`` and ``mos_state``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of

OS_CONFIG_LABEL = "machineconfiguration.openshift.io/machine-os-config"
CURRENT_BUILD = "machineconfiguration.openshift.io/current-machine-os-build"
BUILD_STATES = ("Prepared", "Building", "Failed", "Interrupted", "Succeeded")


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether the roll-out may continue; ``error``: it is stopped until a user acts."""

    goes_on: bool
    reason: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Layering:
    """The two objects of a pool, or None."""

    config: Obj | None = None
    build: Obj | None = None

    @property
    def layered(self) -> bool:
        return self.config is not None or self.build is not None

    @property
    def image(self) -> str:
        """The image that the nodes must run; empty if there is none yet."""
        return str(dig(self.config, "status", "currentImagePullSpec", default="") or "")

    @property
    def built_image(self) -> str:
        return str(dig(self.build, "status", "digestedImagePushSpec", default="") or "")

    @property
    def rendered(self) -> str:
        """The rendered config of the build."""
        return str(dig(self.build, "spec", "machineConfig", "name", default="") or "")

    def build_is(self, state: str) -> bool:
        conditions = dig(self.build, "status", "conditions", default=[])
        return next((each.get("status") == "True" for each in conditions if each.get("type") == state), False)

    @property
    def in_initial_state(self) -> bool:
        return not any(self.build_is(state) for state in BUILD_STATES)

    @property
    def building(self) -> bool:
        """Whether the build is unfinished, failed or not yet adopted, so nodes cannot be at their target."""
        if self.config is None or self.build is None:
            return False
        if any(self.build_is(state) for state in ("Building", "Prepared", "Failed")):
            return True
        return self.build_is("Succeeded") and bool(self.built_image) and self.built_image != self.image

    def progress(self) -> Progress:
        if self.config is None and self.build is not None:
            owner = labels_of(self.build).get(OS_CONFIG_LABEL, "")
            text = f'orphaned MachineOSBuild "{name_of(self.build)}" found, but MachineOSConfig "{owner}" not found'
            return Progress(False, text, text)
        if self.config is None or self.build is None:
            return Progress(False, "No MachineOSConfig or MachineOSBuild for this pool")
        if not self.image:
            return Progress(False, "Desired image not set in MachineOSConfig")
        return self._build_progress(self.config, self.build)

    def _build_progress(self, config: Obj, build: Obj) -> Progress:
        if self.build_is("Succeeded"):
            text = f"Image built successfully, pullspec: {self.image}"
            if self.built_image == self.image:
                return Progress(True, text)
            return Progress(False, f'{text}, but MachineOSConfig "{name_of(config)}" has not updated yet')
        if self.build_is("Building"):
            return Progress(False, "Image build pending")
        if self.build_is("Failed"):
            # upstream inserts the build's name here
            error = f"image build for MachineConfigPool {name_of(build)} failed"
            return Progress(False, "Image build failed", error)
        return Progress(False, "Image is not ready yet")


def layering_of(pool: Obj, configs: Sequence[Obj], builds: Sequence[Obj]) -> Layering:
    """Return the pool's MachineOSConfig and the build of its target: the one that the MachineOSConfig names if it is of
    the current rendered config, else any other one."""
    mine = [each for each in configs if dig(each, "spec", "machineConfigPool", "name") == name_of(pool)]
    if not mine:
        return Layering()
    config, target = mine[0], dig(pool, "spec", "configuration", "name")
    named = annotations_of(config).get(CURRENT_BUILD)
    fitting = [each for each in builds if dig(each, "spec", "machineConfig", "name") == target]
    chosen = [each for each in fitting if name_of(each) == named]
    own = [each for each in fitting if dig(each, "spec", "machineOSConfig", "name") == name_of(config)]
    return Layering(config, next(iter(chosen or own), None))

"""Builds kustomizations that need foreign programs with a ``kustomize`` program in the sandbox of plugins.

``sources/rendering/renderer.py`` uses it if ``kustomize.buildOptions`` has ``--enable-alpha-plugins`` and the engine
met a plugin or a function. The program works on a temporary copy of the repository without network, so functions in
containers cannot run. ``assembly`` finds it on PATH.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncline.sources.directory import Manifests, read_output
from syncline.sources.errors import Problem
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.flags import BuildFlags
from syncline.sources.rendering.plugin_run import PluginRunner
from syncline.sources.tree import Tree

MAX_OBJECTS = 50_000


@dataclass(frozen=True, slots=True)
class KustomizeProgram:
    """Runs the program. ``plugin_home`` is the folder of the operator's plugins (``KUSTOMIZE_PLUGIN_HOME``)."""

    path: Path
    runner: PluginRunner
    plugin_home: Path | None = None

    def build(self, tree: Tree, flags: BuildFlags, edited: tuple[str, Mapping[str, Any]] | None) -> Manifests:
        """Build the folder ``tree``; ``edited``: the kustomization file to replace, and its new fields.

        Raises :class:`SourceError`.
        """
        command = [str(self.path), "build", ".", "--enable-alpha-plugins"]
        command += ["--enable-exec"] if flags.execs else []
        command += ["--enable-helm"] if flags.helm else []
        command += ["--load-restrictor", "LoadRestrictionsNone"] if flags.unrestricted else []
        environment = {} if self.plugin_home is None else {"KUSTOMIZE_PLUGIN_HOME": str(self.plugin_home)}
        with self.runner.checkout(tree, keep_modes=True) as place:
            if edited is not None:
                file = place.root / place.folder / edited[0]
                if file.is_symlink():
                    message = f"{edited[0]} is a symbolic link, which an Application's options cannot change"
                    raise BuildError(message, problem=Problem.REFUSED, fix="commit it as a file")
                file.write_text(json.dumps(edited[1]))
            output = self.runner.run(place, command, environment, f"kustomize build {tree.path or '.'}")
        return Manifests(tuple(read_output(tree.path or ".", output.decode("utf-8", "replace"), MAX_OBJECTS)))

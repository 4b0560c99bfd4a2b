"""The scene ``pull-model`` with Open Cluster Management's own agents: our hub and GitOps controllers, their agents.

    python -m tools.pull_scene --programs FOLDER

``FOLDER`` holds ``registration`` and ``work`` as upstream builds them. The scene is unchanged (``bench/pullscene.py``).
These agents write no ApplicationReport: five values return by feedback, and no message of what failed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.ocm import AGENT_PROGRAMS, Programs, check_programs
from bench.processes import Running
from bench.pullscene import CLUSTERS, NAMESPACE, REFUSED, SET, Scene, begin, played, scenes
from bench.table import Table
from tools.fleet.sides import OURS, THEIRS, World, spoke_definitions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, metavar="FOLDER", help="OCM's registration and work")
    programs = parser.parse_args().programs.resolve()
    check_programs(programs, AGENT_PROGRAMS)

    @contextlib.contextmanager
    def agent(name: str, hub: Running, spoke: Running, folder: Path) -> Iterator[dict[str, Programs]]:
        folder.mkdir()
        world = World(folder, OURS, THEIRS, hub, spoke, programs, name)
        for obj in spoke_definitions():
            world.on_spoke.apply(obj, "clusteradm")
        world.begin_agent()
        try:
            yield world.running
        finally:
            world.end_agent()

    table = Table()
    table.title("The scene pull-model with OCM's own agents")
    with tempfile.TemporaryDirectory(prefix="scene-") as place, played(table, scenes(), Path(place), agent) as scene:
        _story(scene)


def _story(scene: Scene) -> None:
    begun = begin(scene)
    scene.until("an Application for each cluster", lambda: len(scene.applications()) == len(CLUSTERS), begun)
    scene.until("the guestbook runs where it may", lambda: scene.replicas(1), begun)
    scene.until("the hub knows it, by feedback", lambda: scene.at(scene.head()), begun)
    scene.until("the hub knows that one is not well", lambda: _missing(scene), begun)
    begun = scene.commit(1, 2)
    scene.until("commit to two ready pods in each cluster", lambda: scene.replicas(2), begun)
    scene.until("commit to the last status", lambda: scene.at(scene.head()), begun)
    for command in (("work", "list"), ("report", SET, "-N", NAMESPACE)):
        sys.stdout.write(scene.run(*command))


def _missing(scene: Scene) -> bool:
    found = {one["metadata"]["name"]: one.get("status", {}).get("sync", {}) for one in scene.applications()}
    return bool(found.get(f"{REFUSED}-guestbook-app", {}).get("status") == "OutOfSync")


if __name__ == "__main__":
    main()

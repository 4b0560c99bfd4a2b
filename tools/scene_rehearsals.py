"""The five scenes that fail, each rehearsed by one command: what is found before anything is touched, and its cure.

    python -m tools.scene_rehearsals [SCENE …] [--scenes FOLDER]

Manifests of the scenes are as they are; worlds, and the commit that breaks something, are written beside them into a
folder of their own. Seconds are those of a command with all of its processes: what a person waits, and of processors.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.groupscene import CURES, EXAMPLES

from syncline.cli.frame.output import table
from syncline.clustergroup.defaults import layered
from syncline.kube.yaml.loading import dump, load
from syncline.rehearsal.repository import IDENTITY

SCENES = Path(__file__).resolve().parents[2] / "shared" / "scenes"
APPS = "https://github.com/argoproj/argocd-example-apps.git"
OKD = """\
machineConfig: true
nodes:
- {name: okd-master, count: 3, roles: [master], taints: ["node-role.kubernetes.io/master:NoSchedule"]}
- {name: okd-worker, count: 1, roles: [worker]}
objects: [cluster.yaml]
"""
FLEET = """\
clusters:
- {name: aws, count: 3, labels: {syncline.dev/cluster-wave: "1"}}
- {name: gcp-1, rights: managed-by}
"""
HOOK = ("annotations:", "argocd.argoproj.io/")
MAX_SHOWN = 150


def _jobs(scenes: Path, place: Path) -> list[str]:
    """The Job of ``job-with-pod`` without its hook, and another image in the next commit."""
    job = (scenes / "jobs/job-with-pod/job.yaml").read_text()
    plain = "".join(line for line in job.splitlines(keepends=True) if not line.strip().startswith(HOOK))
    (place / "job-with-pod").mkdir()
    (place / "applications.yaml").write_text((scenes / "jobs/applications.yaml").read_text())
    (place / "standalone-job").mkdir()
    (place / "standalone-job/job.yaml").write_text((scenes / "jobs/standalone-job/job.yaml").read_text())
    (place / "job-with-pod/pod.yaml").write_text((scenes / "jobs/job-with-pod/pod.yaml").read_text())
    _git(place, "init", "-q", "-b", "main")
    for image in ("first", "second"):
        (place / "job-with-pod/job.yaml").write_text(plain.replace("job-test", image))
        _git(place, "add", "-A")
        _git(place, "commit", "-qm", image)
    return ["rehearse", str(place), "--after", "main~1", "--revision", "main"]


def _pool_pause(scenes: Path, place: Path) -> list[str]:
    (place / "world.yaml").write_text("machineConfig: true\nnodes: [{name: worker, roles: [worker]}]\n")
    return ["rehearse", str(scenes / "pool-pause"), "--world", str(place / "world.yaml")]


def _machine_config(scenes: Path, place: Path) -> list[str]:
    (place / "world.yaml").write_text(OKD)
    (place / "cluster.yaml").write_bytes((scenes / "machine-config/cluster.yaml").read_bytes())
    config = scenes / "machine-config/99_kubeinit_extra_config_worker.yaml"
    return ["rehearse", str(config), "--world", str(place / "world.yaml")]


def _cluster_group(scenes: Path, place: Path) -> list[str]:
    """Both operators in one wave, without the Jobs that wait."""
    own = load((scenes / "cluster-group/values-hub.yaml").read_bytes(), file="values-hub.yaml")
    values = layered([own, {"clusterGroup": CURES["none"]}])
    shared = {"pattern": "shop", "singleArgoCD": True, "secretStore": {"backend": "none"}}
    (place / "values-global.yaml").write_text(dump({"global": shared, "main": {"clusterGroupName": "hub"}}))
    (place / "values-hub.yaml").write_text(dump(values))
    files = ("-f", str(place / "values-global.yaml"), "-f", str(place / "values-hub.yaml"))
    does = ("--operator-behaviours", str(EXAMPLES / "behaviours"))
    return ["pattern", "races", *files, "--catalog", f"redhat-operators={EXAMPLES / 'redhat-operators'}", *does]


def _pull_model(scenes: Path, place: Path) -> list[str]:
    (place / "fleet.yaml").write_text(FLEET)
    copy = f"{APPS}={scenes / 'argocd-example-apps'}"
    return ["rehearse", str(scenes / "pull-model"), "--world", str(place / "fleet.yaml"), "--repository", copy]


WAYS: Mapping[str, Callable[[Path, Path], list[str]]] = {
    "jobs": _jobs,
    "pool-pause": _pool_pause,
    "machine-config": _machine_config,
    "cluster-group": _cluster_group,
    "pull-model": _pull_model,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SCENE", help=", ".join(WAYS))
    parser.add_argument("--scenes", type=Path, default=SCENES, metavar="FOLDER", help="where the scenes are")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(WAYS))
    if unknown:
        parser.error(f"found {', '.join(unknown)}; allowed: {', '.join(WAYS)}")
    rows = []
    for name in given.names or WAYS:
        with tempfile.TemporaryDirectory() as place:
            command = WAYS[name](given.scenes.resolve(), Path(place))
            print(f"syncline {shlex.join(command)}", flush=True)
            rows.append((name, *_rehearsed(command)))
    print(table(("SCENE", "EXIT", "FOUND", "CURED BY", "SECONDS", "OF PROCESSORS"), rows))


def _rehearsed(command: list[str]) -> tuple[str, ...]:
    begun, before = time.monotonic(), _processors()
    whole = [sys.executable, "-m", "syncline.cli.main", *command, "-o", "json"]
    ended = subprocess.run(whole, capture_output=True, text=True, check=False)
    took = f"{time.monotonic() - begun:.1f}", f"{_processors() - before:.1f}"
    if not ended.stdout:
        return str(ended.returncode), ended.stderr.strip()[-MAX_SHOWN:], "", *took
    return str(ended.returncode), *_said(json.loads(ended.stdout)), *took


def _said(answer: dict[str, Any]) -> tuple[str, str]:
    """Return what fails and what is proved to cure it."""
    if "races" in answer:
        race = answer["races"][0]
        bad = f"{race['explored']['bad']} of {race['explored']['schedules']} orders end badly"
        return f"{race['reader']} takes {race['rehearsed'][0]['taken']}: {bad}", race["cure"]
    proved = [cure["text"] for cure in answer["cures"] if cure["outcome"] == "safe"]
    return answer["headline"][:MAX_SHOWN], proved[0] if proved else "none"


def _processors() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(place), *IDENTITY, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()

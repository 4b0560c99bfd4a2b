#!/usr/bin/env python3
"""What Argo CD's own ApplicationSet controller makes of example sets, and what ours makes, side by side.

    python -m tools.compare_applicationsets EXAMPLES --argocd PROGRAMS [--recorded FILE] [--only NAME] [--show]

EXAMPLES holds a folder for each example: ``*.yaml`` with the objects (ApplicationSets are created last),
``then/*.yaml`` objects that are applied one file after the other once all is quiet, ``options.yaml`` (``flags`` of the
controller and ``settings`` of ``argocd-cmd-params-cm``; ``answers`` of other hosts, as ``bench/githost.py`` has them).
Each folder below ``EXAMPLES/repositories`` with a file ``.repository`` becomes a repository of that path. ``@url@`` in
all these files is the URL of the Git host, which also gives the answers.

PROGRAMS is as in ``bench/argocd.py``. Each side has an embedded API of its own with nothing but the controller at work.
``--recorded`` keeps what Argo CD made; with it ``--argocd`` is not needed a second time. Compared are the Applications
(without uids, times and status, sorted by name, as bytes) and the conditions, resources and health of the sets.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from bench.appsets import ours
from bench.argocd import argocd
from bench.githost import GitHost, git_host
from bench.processes import Blocking, Running, apiserver, free_port, running
from bench.separate import dig

from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import app_project_crd, application_crd

GROUP = "/apis/argoproj.io/v1alpha1"
SETS, APPS = f"{GROUP}/applicationsets", f"{GROUP}/applications"
MERGE = "application/merge-patch+json"
QUIET_S, LIMIT_S, LOOK_S = 1.5, 25.0, 0.1
SETTLED = frozenset({"ResourcesUpToDate", "ErrorOccurred"})
MADE_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "argocd-cmd-params-cm", "namespace": "argocd"},
}
Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    objects: tuple[Obj, ...]
    then: tuple[tuple[Obj, ...], ...] = ()
    flags: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    answers: Obj = field(default_factory=dict)

    def sets(self) -> list[Obj]:
        return [obj for obj in self.objects if obj["kind"] == "ApplicationSet"]


def example_of(folder: Path, url: str) -> Example:
    def read(file: Path) -> list[Obj]:
        found = [each for each in yaml.safe_load_all(file.read_text().replace("@url@", url)) if each]
        for each in found:
            each["metadata"].setdefault("namespace", "argocd")
        return found

    options_file = folder / "options.yaml"
    options = yaml.safe_load(options_file.read_text()) if options_file.exists() else {}
    objects = [obj for file in sorted(folder.glob("*.yaml")) if file != options_file for obj in read(file)]
    objects.sort(key=lambda obj: (obj["kind"] == "ApplicationSet", obj["kind"] != "CustomResourceDefinition"))
    return Example(
        folder.name,
        tuple(objects),
        tuple(tuple(read(file)) for file in sorted((folder / "then").glob("*.yaml"))),
        tuple(options.get("flags", ())),
        dict(options.get("settings", {})),
        dict(options.get("answers", {})),
    )


# -- one side -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Side:
    """A cluster with one controller; examples run in it one after the other, and each leaves nothing behind."""

    server: Running
    link: Blocking = field(init=False)

    def __post_init__(self) -> None:
        self.link = Blocking(self.server)

    def outcome(self, example: Example, host: GitHost) -> Obj:
        host.answer(example.answers)
        try:
            for obj in example.objects:
                self._apply(obj)
            stages = [self._settled(example)]
            for objects in example.then:
                for obj in objects:
                    self._apply(obj)
                stages.append(self._settled(example))
            return {"stages": stages}
        except SystemExit as refused:
            return {"stages": [], "refused": str(refused)}
        finally:
            self._clear(example)

    def _apply(self, obj: Obj) -> None:
        path = f"{self._collection(obj)}/{obj['metadata']['name']}"
        status = obj.get("status")
        query = "?fieldManager=example&force=true"
        self.link.send("PATCH", path + query, obj, "application/apply-patch+yaml")
        if status is not None and obj["kind"] not in ("ApplicationSet", "Application"):
            with contextlib.suppress(SystemExit):  # a kind without a status subresource has it already
                self.link.send("PATCH", f"{path}/status{query}", obj, "application/apply-patch+yaml")
        if obj["kind"] == "CustomResourceDefinition":
            _wait(lambda: self._established(path))

    def _established(self, path: str) -> bool:
        conditions = dig(self.link.send("GET", path), "status", "conditions") or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    def _collection(self, obj: Obj) -> str:
        group, _, version = obj["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for resource in self.link.send("GET", root)["resources"]:
            if resource["kind"] == obj["kind"] and "/" not in resource["name"]:
                place = f"/namespaces/{obj['metadata']['namespace']}" if resource["namespaced"] else ""
                return f"{root}{place}/{resource['name']}"
        raise SystemExit(f"{obj['apiVersion']} {obj['kind']}: the API does not serve it; add its definition")

    def _settled(self, example: Example) -> Obj:
        """Until all sets have conditions and nothing has changed for a while; what there is then."""
        last, since, begun = "", time.perf_counter(), time.perf_counter()
        while time.perf_counter() - begun < LIMIT_S:
            sets, apps = self.link.send("GET", SETS)["items"], self.link.send("GET", APPS)["items"]
            seen = json.dumps([sets, apps], sort_keys=True)
            if seen != last:
                last, since = seen, time.perf_counter()
            quiet = time.perf_counter() - since >= QUIET_S
            if quiet and all(_reported(each) for each in sets):
                break
            time.sleep(LOOK_S)
        return {"applications": [_plain(each) for each in apps], "sets": [_status(each) for each in sets]}

    def _clear(self, example: Example) -> None:
        for each in self.link.send("GET", SETS)["items"]:
            self._remove(
                f"{GROUP}/namespaces/{each['metadata']['namespace']}/applicationsets/{each['metadata']['name']}"
            )
        _wait(lambda: not self.link.send("GET", SETS)["items"])
        for each in self.link.send("GET", APPS)["items"]:
            self._remove(f"{GROUP}/namespaces/{each['metadata']['namespace']}/applications/{each['metadata']['name']}")
        _wait(lambda: not self.link.send("GET", APPS)["items"])
        for obj in reversed(example.objects):
            if obj["kind"] not in ("ApplicationSet", "Application", "CustomResourceDefinition", "Namespace"):
                self._remove(f"{self._collection(obj)}/{obj['metadata']['name']}")

    def _remove(self, path: str) -> None:
        for method, body, content in (
            ("DELETE", None, "application/json"),
            ("PATCH", {"metadata": {"finalizers": None}}, MERGE),
        ):
            with contextlib.suppress(SystemExit):  # it may be gone already
                self.link.send(method, path, body, content)


def _wait(reached: Callable[[], bool]) -> None:
    until = time.perf_counter() + LIMIT_S
    while not reached():
        if time.perf_counter() > until:
            raise SystemExit(f"not reached in {LIMIT_S:g} s")
        time.sleep(LOOK_S)


def _reported(found: Obj) -> bool:
    return {each["type"] for each in dig(found, "status", "conditions") or []} >= SETTLED


def _plain(app: Obj) -> Obj:
    metadata = {key: value for key, value in app["metadata"].items() if key not in MADE_BY_SERVER}
    owners = [
        {key: value for key, value in each.items() if key != "uid"} for each in metadata.get("ownerReferences", [])
    ]
    if owners:
        metadata["ownerReferences"] = owners
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "@now@"
    rest = {key: value for key, value in app.items() if key not in ("metadata", "status")}
    return {"metadata": metadata, **rest}


def _status(found: Obj) -> Obj:
    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(each) for key, each in value.items() if key != "lastTransitionTime"}
        return [timeless(each) for each in value] if isinstance(value, list) else value

    status = timeless(found.get("status") or {})
    status["conditions"] = sorted(status.get("conditions", []), key=lambda each: str(each["type"]))
    kept = ("name", "namespace", "finalizers", "annotations")
    return {"metadata": {key: found["metadata"][key] for key in kept if key in found["metadata"]}, "status": status}


Controller = Callable[[Path, Running, Sequence[str]], contextlib.AbstractContextManager[Any]]


def theirs(programs: Path) -> Controller:
    return lambda folder, server, flags: argocd(programs, folder, server.kubeconfig, flags)


def our_own(folder: Path, server: Running, _flags: Sequence[str]) -> contextlib.AbstractContextManager[Any]:
    return ours(folder, server)


def run_side(name: str, controller: Controller, examples: Sequence[Example], host: GitHost, place: Path) -> Obj:
    found: Obj = {}
    groups = sorted({(each.flags, tuple(sorted(each.settings.items()))) for each in examples})
    for number, (flags, settings) in enumerate(groups):
        folder = place / f"{name}-{number}"
        folder.mkdir()
        port = free_port()
        with running(apiserver(folder, port), folder, port) as server:
            side = Side(server)
            side._apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
            for obj in (application_crd(), app_project_crd(), application_set_crd(), _project("default")):
                side._apply(obj)
            side._apply({**SETTINGS, "data": dict(settings)})
            side._apply({**SETTINGS, "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {}})
            with controller(folder / "controller", server, flags):
                for each in examples:
                    if (each.flags, tuple(sorted(each.settings.items()))) == (flags, settings):
                        begun = time.perf_counter()
                        found[each.name] = side.outcome(each, host)
                        said = [f"{len(stage['applications'])} Applications" for stage in found[each.name]["stages"]]
                        print(
                            f"{name:<8} {each.name:<44} {', '.join(said)} ({time.perf_counter() - begun:.1f} s)",
                            flush=True,
                        )
    return found


def _project(name: str) -> Obj:
    spec = {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    }
    metadata = {"name": name, "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


# -- both -----------------------------------------------------------------------------------------------------------


def differences(theirs_made: Obj, ours_made: Obj) -> list[str]:
    """Lines of a unified diff, theirs first; empty when both are equal, byte for byte."""
    before, after = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (theirs_made, ours_made))
    return list(difflib.unified_diff(before, after, "argocd", "syncline", lineterm="", n=4))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=Path)
    parser.add_argument("--argocd", type=Path, metavar="PROGRAMS", help="folder of Argo CD's programs")
    parser.add_argument(
        "--recorded", type=Path, metavar="FILE", help="what Argo CD made; written with --argocd, else read"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this example alone; may be repeated"
    )
    parser.add_argument("--show", action="store_true", help="print each difference")
    parser.add_argument("--no-ours", action="store_true", help="only record")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep logs here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compare-") as temporary:
        place = chosen.keep or Path(temporary)
        if chosen.keep:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        with git_host(place / "git") as host:
            return _compare(chosen, place, host)


def _compare(chosen: argparse.Namespace, place: Path, host: GitHost) -> int:
    for repository in sorted((chosen.examples / "repositories").rglob(".repository")):
        source = repository.parent
        name = str(source.relative_to(chosen.examples / "repositories"))
        shutil.copytree(source, place / "work" / name, symlinks=True)
        (place / "work" / name / ".repository").unlink()
        host.publish(name, place / "work" / name)
    folders = [each for each in sorted(chosen.examples.iterdir()) if each.is_dir() and each.name != "repositories"]
    wanted = [each for each in folders if not chosen.only or each.name in chosen.only]
    examples = [example_of(each, host.url) for each in wanted]
    if chosen.argocd:
        said = json.dumps(run_side("argocd", theirs(chosen.argocd), examples, host, place)).replace(host.url, "@url@")
        made = json.loads(said)
        if chosen.recorded:
            before = json.loads(chosen.recorded.read_text()) if chosen.recorded.exists() and chosen.only else {}
            chosen.recorded.write_text(json.dumps(before | made, indent=1, sort_keys=True))
    else:
        made = json.loads(chosen.recorded.read_text())
    if chosen.no_ours:
        return 0
    mine = json.loads(json.dumps(run_side("syncline", our_own, examples, host, place)).replace(host.url, "@url@"))
    differ = 0
    for each in examples:
        lines = differences(made[each.name], mine[each.name])
        counts = ", ".join(str(len(stage["applications"])) for stage in made[each.name]["stages"])
        print(f"{each.name:<44} {counts:>8}   {'equal' if not lines else 'DIFFERS'}")
        differ += bool(lines)
        if chosen.show:
            print("\n".join(lines))
    print(f"{len(examples) - differ} of {len(examples)} equal")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

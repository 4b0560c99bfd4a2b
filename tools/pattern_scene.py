"""Installs patterns with operators, in virtual and real time: what came when, who waited for what, what could not be.

    python -m tools.pattern_scene FOLDER… [--copy ADDRESS=FOLDER] [--pictures FOLDER] [--live]
    python -m tools.pattern_scene --cures [--pictures FOLDER] [--live]

Each FOLDER is a checkout of a public pattern as it is, or of anyone's; nothing is fetched. ``--cures`` plays the scene
``cluster-group`` with each of its cures (``bench/groupscene.py``). ``--live`` does the same with ``syncline up`` and
``syncline pattern install`` as processes: charts of registries are then asked for, and named where no host answers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.groupscene import BASIC_USERS, CURES, GROUP_NAME, NAME, files_of, installation
from bench.processes import Blocking, Running, free_port, running, syncline
from bench.pullscene import scenes

from syncline.base.clock import parse_time
from syncline.cli.pattern.values import read_file
from syncline.cli.views.patternreport import describe_installed, summary
from syncline.cli.views.patterntimeline import drawn_rows
from syncline.kube.kinds.validatedpatterns import PATTERN
from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import dump, load_all
from syncline.patterns.installing.given import spec_given
from syncline.patterns.installing.report import Waits, children_of, held_rows, operators_of
from syncline.patterns.installing.timeline import LISTED, Row, in_order, rows_of
from syncline.patterns.operators.behaving import shipped
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.installing.playing import NAMESPACE, REPOSITORY, Installation, Played, Playing, play, signs_of
from syncline.rehearsal.repository import commit_files
from syncline.sources.helm.patterns import KNOWN

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "operators"
CATALOGS = {
    **{name: EXAMPLES / name for name in ("redhat-operators", "community-operators", "certified-operators")},
    "openshift": EXAMPLES / "openshift" / "catalog",
}
TOLD = ("kubevirt-hyperconverged", "class ocs-storagecluster-ceph-rbd-virtualization")
"""Operator and storage class that the picture of all cures has."""
WORDS = {"none": "no order", "jobs": "Jobs that look", "wait": "a wait without a pod", "gate": "a gate"}
CHART = "https://git.example.com/charts/clustergroup"
CHOSEN = "/api/v1/namespaces/openshift-cnv/configmaps/boot-images-storage"
STORAGE_AFTER, STORAGE_AFTER_LIVE = timedelta(minutes=5), timedelta(minutes=2)
Told = tuple[str, str, Played, float, str]
"""Name and group of a pattern, what became of it, real seconds, and a sentence more."""
LIMIT_S, CALM_S, WELL_S = 900.0, 120.0, 10.0
"""Real seconds: of an installation, without a change, and with all well."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="checkouts of patterns")
    parser.add_argument("--copy", action="append", default=[], metavar="ADDRESS=FOLDER", help="a copy of a chart")
    parser.add_argument("--cures", action="store_true", help="the scene cluster-group with each of its cures")
    parser.add_argument("--cure", choices=sorted(CURES), help="one of its cures alone")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write an SVG for each installation there")
    parser.add_argument("--live", action="store_true", help="in real time, with processes")
    given = parser.parse_args()
    copies = {address: Path(folder) for address, _, folder in (one.rpartition("=") for one in given.copy)}
    with tempfile.TemporaryDirectory(prefix="pattern-") as place:
        together: list[Row] = []
        for cure in (given.cure,) if given.cure else CURES if given.cures else ():
            told = _cure(cure, Path(place) / cure, live=given.live)
            _tell(f"cluster-group-{cure}", told, given.pictures)
            together += _of_cure(cure, told[2].rows, together)
        if together and given.pictures is not None:
            text = "cluster-group: the second operator has to find the storage of the first"
            (given.pictures / "cluster-group.svg").write_text(drawn_rows(together, max(_ends(together)), text))
        for folder in given.folders:
            name = folder.resolve().name
            _tell(name, _pattern(folder, copies, Path(place) / name, live=given.live), given.pictures)


def _tell(title: str, found: Told, pictures: Path | None) -> None:
    name, group, played, took_s, more = found
    text = summary(name, group, played)
    sys.stdout.write(f"\n== {title}, in {took_s:.1f} s\n\n{describe_installed(text, played)}\n{more}\n")
    sys.stdout.flush()
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / f"{title}.svg").write_text(drawn_rows(played.rows, played.ended, f"{title}: {text}"))


def _of_cure(cure: str, rows: Sequence[Row], before: Sequence[Row]) -> list[Row]:
    """Return what tells one cure from the others, as if all had begun together."""
    later = rows[0].began - before[0].began if before else timedelta()
    told = [row for row in rows if row.kind in ("job", "wait") or row.what.partition(" ")[2] in TOLD]
    made = [replace(rows[0], what=f"pattern: {WORDS[cure]}"), *told]
    return [
        replace(row, began=row.began - later, ended=row.ended - later if row.ended is not None else None)
        for row in made
    ]


def _ends(rows: Sequence[Row]) -> list[datetime]:
    return [row.ended or row.began for row in rows]


# -- virtual time ------------------------------------------------------------------------------------------------------


def _cure(cure: str, place: Path, *, live: bool) -> Told:
    scene, begun = scenes() / "cluster-group", time.perf_counter()
    place.mkdir()
    if live:
        played, chosen = _cure_live(cure, scene, place)
    else:
        playing = Playing(installation(scene, cure, storage_after=STORAGE_AFTER), place)
        playing.install()
        played = playing.played(calm=playing.until_calm(timedelta(hours=4), timedelta(minutes=20)))
        chosen = dig(playing.world.send("GET", CHOSEN), "data", "storageClass")
    return NAME, GROUP_NAME, played, time.perf_counter() - begun, f"the second operator chose {chosen}"


def _pattern(folder: Path, copies: Mapping[str, Path], place: Path, *, live: bool) -> Told:
    begun = time.perf_counter()
    place.mkdir()
    values: Any = read_file(folder / "values-global.yaml")
    spec, name = spec_given(values), str(dig(values, "global", "pattern") or folder.name)
    group = str(spec["clusterGroupName"])
    if live:
        played = _pattern_live(folder, name, place)
    else:
        played = play(_installation(folder, name, group, spec, copies), place)
    return name, group, played, time.perf_counter() - begun, ""


def _installation(folder: Path, name: str, group: str, spec: Obj, copies: Mapping[str, Path]) -> Installation:
    from syncline.assembly.operators.folders import FolderCatalogs, read_behaviours

    catalogs, does = FolderCatalogs.read(CATALOGS), read_behaviours(EXAMPLES / "openshift" / "behaviours")
    objects: list[Any] = load_all((EXAMPLES / "openshift" / "objects.yaml").read_bytes()).values
    return Installation(folder, name, group, catalogs, does, spec, copies=copies, objects=objects)


# -- real time ---------------------------------------------------------------------------------------------------------


def _stand_in(place: Path, name: str, home: Path) -> None:
    """Let git read the addresses of the pattern and of its chart from this machine."""
    rules = {f"{REPOSITORY}{name}": home, CHART: place / "chart"}
    lines = "".join(f'[url "file://{path}"]\n\tinsteadOf = {address}\n' for address, path in rules.items())
    (place / "gitconfig").write_text(lines)
    os.environ["GIT_CONFIG_GLOBAL"] = str(place / "gitconfig")


@contextlib.contextmanager
def _up(place: Path, catalogs: Mapping[str, Path], behaviours: Path) -> Iterator[Running]:
    port = free_port()
    os.environ["SYNCLINE_HOME"] = str(place / "home")
    named = [text for name, folder in catalogs.items() for text in ("--catalog", f"{name}={folder}")]
    given = ("--memory", "--listen", f"127.0.0.1:{port}", "--kubeconfig-out", str(place / "kubeconfig"), "--nodes", "3")
    roles = ("--run-commands", "--operators", "--patterns", *named, "--operator-behaviours", str(behaviours))
    with running(syncline("up", *given, *roles), place, port) as found:
        yield found


def _cure_live(cure: str, scene: Path, place: Path) -> tuple[Played, str]:
    behaviours = place / "behaviours"
    behaviours.mkdir()
    (behaviours / "ocs-operator.yaml").write_text(_soon("ocs-operator"))
    home = place / NAME
    commit_files(read_files(scene).changed(files_of(cure)), home)
    _stand_in(place, NAME, home)
    with _up(place, {"redhat-operators": CATALOGS["redhat-operators"]}, behaviours) as server:
        api = Blocking(server)
        _make(api, BASIC_USERS)
        more = ("--extra-values", "group.yaml", "--extra-values", "cure.yaml")
        _install(server, place, NAME, GROUP_NAME, *more)
        played = _watched(api, NAME, lambda: api.find(CHOSEN) is not None)
        return played, str(dig(api.find(CHOSEN), "data", "storageClass"))


def _pattern_live(folder: Path, name: str, place: Path) -> Played:
    home = place / "pattern"
    commit_files(read_files(folder), home)
    _stand_in(place, name, home)
    with _up(place, CATALOGS, EXAMPLES / "openshift" / "behaviours") as server:
        api = Blocking(server)
        _make(api, load_all((EXAMPLES / "openshift" / "objects.yaml").read_bytes()).values)
        time.sleep(WELL_S)  # the kinds of OpenShift come first, as there
        files = ("-f", str(home / "values-global.yaml"))
        _install(server, place, name, "", *files)
        return _watched(api, name)


def _soon(package: str) -> str:
    """Return the file of an operator that takes as long as someone who watches is patient."""
    known = shipped().of(package)
    assert known is not None, "it comes along"
    folder = Path(__file__).resolve().parents[1] / "src/syncline/patterns/operators/behaviours"
    (value,) = load_all((folder / f"{package}.yaml").read_bytes()).values
    for line in value["lines"]:
        line["after"] = f"{STORAGE_AFTER_LIVE.total_seconds():.0f}s"
    return dump(value)


PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "OperatorGroup": "/apis/operators.coreos.com/v1/namespaces/{}/operatorgroups",
    "Subscription": "/apis/operators.coreos.com/v1alpha1/namespaces/{}/subscriptions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


def _make(api: Blocking, objects: Sequence[Any]) -> None:
    for one in objects:
        api.send("POST", PLURALS[one["kind"]].format(one["metadata"].get("namespace", "")), one)


def _install(server: Running, place: Path, name: str, group: str, *more: str) -> None:
    """Run ``syncline pattern install``. The chart of cluster groups is Syncline's own: its name and version suffice."""
    address = f"{REPOSITORY}{name}"
    about = f"apiVersion: v2\nname: clustergroup\nversion: {KNOWN['clustergroup'].version}\n"
    commit_files(Files({"Chart.yaml": about.encode()}), place / "chart")
    said = ("--group", group) if group else ()
    command = ("pattern", "install", name, "--repo", address, "--revision", "main", "--chart-repo", CHART)
    command = (*command, "--chart-revision", "main", *said, *more, "--kubeconfig", str(server.kubeconfig))
    subprocess.run(syncline(*command), check=True, timeout=120)


def _watched(api: Blocking, name: str, reached: Callable[[], bool] = lambda: True) -> Played:
    """Look every second until it is ``reached`` and all is well or nothing changes, or the time is over."""
    path = f"/apis/{PATTERN.group}/{PATTERN.version}/namespaces/{NAMESPACE}/patterns/{name}"
    began, waits = datetime.now(UTC), Waits()
    changed, signs = began, signs_of(name, ())
    while True:
        objects = [one for kind in LISTED for one in kind.items(api.find(kind.path))]
        now = datetime.now(UTC)
        waits.look(name, objects, now)
        if (found := signs_of(name, objects)) != signs:
            changed, signs = now, found
        pattern = api.send("GET", path)
        quiet, whole = (now - changed).total_seconds(), (now - began).total_seconds()
        rows = in_order(rows_of(pattern, objects, now), held_rows(waits.made))
        began = min(began, parse_time(dig(pattern, "metadata", "creationTimestamp")))
        children, operators = children_of(name, objects), operators_of(name, objects)
        played = Played(pattern, rows, operators, children, list(waits.made), began, now, quiet >= WELL_S)
        ended = quiet >= CALM_S or (quiet >= WELL_S and played.well)
        if whole >= LIMIT_S or (ended and reached()):
            return played
        time.sleep(1.0)


if __name__ == "__main__":
    main()

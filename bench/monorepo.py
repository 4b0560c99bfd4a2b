"""A repository of many applications: what a commit costs that touches one of them, with three renderers."""

from __future__ import annotations

import resource
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.table import Table
from syncline.assembly.sources.reading import GitSourceReader
from syncline.kube.objects import Obj
from syncline.sources.rendering.environment import RenderContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERIOD = timedelta(minutes=2)
OBJECTS = 10
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: object-{number}\ndata:\n  text: {text}\n"
KINDS = ("plain", "kustomize", "helm")


def figures(table: Table, folder: Path, *, applications: int) -> None:
    table.title(f"A repository of {applications} applications, {OBJECTS} objects each")
    for kind in KINDS:
        place = folder / f"monorepo-{kind}"
        sources = _repository(place, kind, applications)
        reader = GitSourceReader(folder / f"mirrors-{kind}", allow_local=True)
        first, _ = _read(reader, sources, NOW)
        _commit(place, "README.md", "nothing that anything reads")
        nothing, cpu_nothing = _read(reader, sources, NOW + PERIOD)
        _commit(place, _touched(kind, 7), "# touched\n")
        one, cpu_one = _read(reader, sources, NOW + 2 * PERIOD)
        table.row(f"{kind}: first render of all", f"{first:.2f} s", f"{first / applications * 1000:.1f} ms each")
        table.row(f"{kind}: a commit that touches none", f"{nothing:.2f} s", f"{cpu_nothing:.2f} s of processor time")
        table.row(f"{kind}: a commit that touches one", f"{one:.2f} s", f"{cpu_one:.2f} s of processor time")


def _touched(kind: str, number: int) -> str:
    return {
        "plain": f"apps/{number}/0.yaml",
        "kustomize": f"apps/{number}/0.yaml",
        "helm": f"apps/{number}/values.yaml",
    }[kind]


def _read(reader: GitSourceReader, sources: list[Obj], now: datetime) -> tuple[float, float]:
    """Seconds on the wall, and of all processors together."""
    begun, used = time.perf_counter(), _cpu()
    for number, source in enumerate(sources):
        found = reader.poll((source,), ("HEAD",), now, RenderContext(f"app-{number}", "default", "ns"), since=now)
        if found.error or len(found.objects) != OBJECTS:
            raise SystemExit(f"application {number}: {found.error or len(found.objects)}")
    return time.perf_counter() - begun, _cpu() - used


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _repository(place: Path, kind: str, applications: int) -> list[Obj]:
    place.mkdir()
    base = place / "base"
    base.mkdir()
    (base / "kustomization.yaml").write_text("resources: [shared.yaml]\n")
    (base / "shared.yaml").write_text(MAP.format(number="shared", text="shared"))
    for number in range(applications):
        app = place / "apps" / str(number)
        app.mkdir(parents=True)
        own = OBJECTS - (kind == "kustomize")
        if kind == "helm":
            (app / "templates").mkdir()
            (app / "Chart.yaml").write_text(f"apiVersion: v2\nname: app-{number}\nversion: 1.0.0\n")
            (app / "values.yaml").write_text("color: blue\n")
        for index in range(own):
            name = f"templates/{index}.yaml" if kind == "helm" else f"{index}.yaml"
            (app / name).write_text(MAP.format(number=f"{number}-{index}", text="x" * 400))
        if kind == "kustomize":
            listed = ", ".join(["../../base", *(f"{index}.yaml" for index in range(own))])
            (app / "kustomization.yaml").write_text(f"resources: [{listed}]\n")
    subprocess.run(["git", "-C", str(place), "init", "-q"], check=True)
    _commit(place, "README.md", "begin")
    return [{"repoURL": str(place), "path": f"apps/{number}"} for number in range(applications)]


def _commit(place: Path, name: str, more: str) -> None:
    with (place / name).open("a") as stream:
        stream.write(more)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for command in (("add", "-A"), (*who, "commit", "-q", "-m", "change")):
        subprocess.run(["git", "-C", str(place), *command], check=True)

"""Generated overlays, built by us and by ``kubectl kustomize``.

Overlays come from a fixed seed. ``kubectl`` may embed an older engine, so only features that have not changed since
kustomize 5.0 are combined here.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from syncline.kube.yaml import loading as yaml
from syncline.sources.kustomize.failure import BuildError

_spec = importlib.util.spec_from_file_location("kust", Path(__file__).with_name("kust.py"))
assert _spec is not None and _spec.loader is not None
kust = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kust)

KUBECTL = shutil.which("kubectl")
RUNS = 25
"""Each takes kubectl about a tenth of a second."""

NAMES = st.sampled_from(["a", "b", "web"])
SCALARS = st.sampled_from(["yes", "5", "0755", "1e3", "2001-01-01", "a: b", "", "x\ny\n", " lead", "0x1f", "true", "n"])


@st.composite
def container(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"name": draw(NAMES), "image": draw(st.sampled_from(["nginx", "nginx:1", "h:5000/i:t"]))}
    found["env"] = draw(st.lists(st.fixed_dictionaries({"name": NAMES, "value": SCALARS}), max_size=2))
    found["ports"] = draw(st.lists(st.fixed_dictionaries({"containerPort": st.sampled_from([80, 443])}), max_size=2))
    return found


def deployment(containers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": containers}}, **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def one_of_each(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({each["name"]: each for each in containers}.values())


@st.composite
def overlay(draw: st.DrawFn) -> dict[str, str]:
    base = one_of_each(draw(st.lists(container(), min_size=1, max_size=3)))
    patch = one_of_each(draw(st.lists(container(), min_size=1, max_size=2)))
    fields: dict[str, Any] = {"resources": ["../base"]}
    optional: dict[str, Any] = {
        "namePrefix": st.just("p-"),
        "nameSuffix": st.just("-s"),
        "namespace": st.just("team"),
        "commonLabels": st.dictionaries(NAMES, SCALARS, min_size=1),
        "commonAnnotations": st.dictionaries(NAMES, SCALARS, min_size=1),
        "images": st.just([{"name": "nginx", "newTag": "9"}]),
        "replicas": st.just([{"name": "web", "count": 2}]),
        "patches": st.just([{"patch": yaml.dump(deployment(patch)), "target": {"kind": "Deploy.*"}}]),
        "configMapGenerator": st.just([{"name": "c", "literals": ["k=yes", "l= x"], "behavior": "merge"}]),
    }
    for name in sorted(optional):
        if draw(st.booleans()):
            fields[name] = draw(optional[name])
    inner = {"resources": ["d.yaml"], "configMapGenerator": [{"name": "c", "literals": ["k=1"]}]}
    return {
        "base/kustomization.yaml": yaml.dump(inner),
        "base/d.yaml": yaml.dump(deployment(base)),
        "top/kustomization.yaml": yaml.dump(fields),
    }


def ours(files: dict[str, str]) -> str | None:
    try:
        text: str = kust.built(files, "top").text
    except BuildError:
        return None
    return text


def theirs(files: dict[str, str], folder: Path) -> str | None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert KUBECTL is not None
    answer = subprocess.run([KUBECTL, "kustomize", str(folder / "top")], capture_output=True, text=True, timeout=60)
    return answer.stdout if answer.returncode == 0 else None


@pytest.mark.skipif(KUBECTL is None, reason="no kubectl on this machine")
@seed(20)
@settings(max_examples=RUNS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(files=overlay())
def test_kubectl_builds_the_same_bytes(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert ours(files) == theirs(files, tmp_path_factory.mktemp("overlay"))

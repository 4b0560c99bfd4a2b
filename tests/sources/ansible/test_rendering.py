"""Playbooks as sources of Applications, where the administrator's settings allow it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from syncline.assembly.playbooks import PROGRAM
from syncline.assembly.sources.reading import renderers_with
from syncline.assembly.sources.source_rules import source_rules
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.sources.ansible.launching import packages_folder
from syncline.sources.ansible.rendering import RENDER_LIMITS, PlaybookRenderer
from syncline.sources.ansible.rooting import RootRunner
from syncline.sources.errors import SourceError
from syncline.sources.helm.dependencies import Remote
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import DEFAULT_RENDERERS, Named, Rendered, SourceSpec, render_opened
from syncline.sources.tree import MemoryTree, Tree

TASKS = b"- hosts: infra\n  gather_facts: false\n  tasks:\n    - shell: echo {{ motd }} > /etc/motd\n"
NAMED = RenderContext("site", "default", "openshift-config", source="ansible")


def rendered(
    files: dict[str, bytes], *, ansible: bool = True, context: RenderContext = NAMED, remote: Remote | None = None
) -> Rendered:
    source = {"repoURL": "https://git.example.org/site.git", "path": "."}
    # At the priority of the tests, not of renders: those wait for idle processors.
    tools = (PlaybookRenderer(RootRunner(Path(PROGRAM), RENDER_LIMITS)), *DEFAULT_RENDERERS)
    return render_opened(
        source, MemoryTree(files), "1", context=context, ansible=ansible, renderers=tools, remote=remote
    )


def settings(**data: str) -> dict[str, object]:
    return {"metadata": {"name": "argocd-cm"}, "data": data}


def test_the_setting_is_off_by_default_and_on_by_the_administrators_word() -> None:
    assert not source_rules([], []).ansible
    assert not source_rules([], [settings(**{"ansible.enable": "yes"})]).ansible
    assert source_rules([], [settings(**{"ansible.enable": "true"})]).ansible


def test_an_annotated_application_is_refused_where_it_is_off() -> None:
    with pytest.raises(SourceError, match=r'the administrator allows it by ansible\.enable: "true" in argocd-cm'):
        rendered({"playbook.yml": TASKS}, ansible=False)


def test_captures_are_among_the_tools_of_controllers() -> None:
    assert [one.source_name for one in renderers_with(None) if isinstance(one, Named)] == ["ansible"]


def test_a_folder_of_manifests_is_none_of_its_business() -> None:
    found = rendered({"a.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, context=RenderContext("a"))
    assert [one["kind"] for one in found.manifests] == ["ConfigMap"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"site.yml": TASKS}, "no playbook.yml in the folder; name the playbook playbook.yml"),
        (
            {"playbook.yml": TASKS, "capture.yaml": b"pools: a\n"},
            "it knows pool, name, firstBoot, installed, variables",
        ),
        ({"playbook.yml": TASKS, "capture.yaml": b"pool: 'a]\\n[b'\n"}, "capture.yaml: pool"),
        ({"playbook.yml": TASKS, "capture.yaml": b"pool: a\npool: {\n"}, "capture.yaml"),
        ({"playbook.yml": TASKS, "capture.yaml": b"# " + b"x" * 70_000}, "capture.yaml has more than 65536 bytes"),
        ({"playbook.yml": TASKS, "capture.yaml": b"requirements: ../x"}, "requirements '../x' leaves the repository"),
        ({"playbook.yml": TASKS, "capture.yaml": b"requirements: x"}, "requirements 'x' is no file of the repository"),
        (
            {"playbook.yml": TASKS, "capture.yaml": b"requirements: r.yml", "r.yml": b"collections: [a.b]"},
            "r.yml: collections[0]: a.b has no version: name one, as version: 1.2.3",
        ),
    ],
)
def test_what_is_wrong_with_the_folder_is_named_before_anything_runs(files: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(SourceError) as error:
        rendered(files)
    assert sentence in str(error.value)


REQUIREMENTS = f"""
collections:
  - {{name: site.net, type: git, source: 'https://git.example.org/net.git', version: {"a1" * 20}}}
  - {{source: ours/local, type: dir}}
roles:
  - {{src: 'https://git.example.org/role.git', scm: git, version: {"b2" * 20}}}
"""
USES = b"""
- hosts: infra
  gather_facts: false
  roles: [role]
  tasks:
    - shell: echo {{ motd | site.net.loud }} {{ 'x' | site.local.loud }} > /etc/motd
"""
FILTER = b"class FilterModule:\n    def filters(self):\n        return {'loud': str.upper}\n"


@dataclass(frozen=True)
class Lending:
    """Two repositories of one project."""

    viewer: str = "default 1"
    schemes: tuple[str, ...] = ()

    def base(self, url: str, ref: str) -> tuple[Tree, str]:
        net = {"galaxy.yml": b"namespace: site\nname: net\nversion: 1.0.0\n", "plugins/filter/loud.py": FILTER}
        role = {"tasks/main.yml": b"- copy: {dest: /etc/role, content: '', mode: '0644'}\n"}
        return MemoryTree(net if "net" in url else role), ref

    def file(self, url: str, most: int) -> bytes:
        raise NotImplementedError

    def text(self, url: str) -> bytes:
        raise NotImplementedError

    def archive(self, digest: str) -> bytes:
        raise NotImplementedError

    def dependency(self, repository: str, chart: str, wanted: str, pin: str) -> tuple[str, str]:
        raise NotImplementedError


PINNED = {
    "playbook.yml": USES,
    "capture.yaml": b"pool: infra\nvariables: {motd: hi}\nrequirements: deps/requirements.yml\n",
    "deps/requirements.yml": REQUIREMENTS.encode(),
    "ours/local/galaxy.yml": b"namespace: site\nname: local\nversion: 1.0.0\n",
    "ours/local/plugins/filter/loud.py": FILTER,
}


@pytest.mark.process
@pytest.mark.skipif(packages_folder() is None, reason="ansible-core is not installed: the extra ansible")
@pytest.mark.skipif(bool(sandbox_problem()), reason="this machine makes no root for playbooks")
def test_a_playbook_is_captured_at_render_time_with_what_it_pins() -> None:
    found = rendered(PINNED, remote=Lending())
    (config,) = found.manifests
    assert config["metadata"]["name"] == "99-infra-ansible" and found.source_type.value == "Plugin"
    files = {one["path"]: one["contents"]["source"] for one in config["spec"]["config"]["storage"]["files"]}
    assert files == {"/etc/motd": "data:,HI%20X%0A", "/etc/role": "data:,"}


def test_what_was_fetched_for_one_project_is_not_kept_for_another() -> None:
    tree, renderer = MemoryTree(PINNED), PlaybookRenderer(RootRunner(Path(PROGRAM), RENDER_LIMITS))
    specs = [SourceSpec("", ansible=True, remote=Lending(viewer)) for viewer in ("a", "b")]
    assert renderer.reads(tree, specs[0]) != renderer.reads(tree, specs[1])
    with pytest.raises(SourceError, match="is elsewhere, and nothing is fetched here; commit it"):
        rendered(PINNED)

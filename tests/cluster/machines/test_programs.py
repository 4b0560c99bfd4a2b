"""What a container runs where commands are processes: a table over its words, its image's data and the machine."""

from __future__ import annotations

import pytest

from syncline.cluster.machines.processes.launching import installed
from syncline.cluster.machines.scripted.images import ImageCache, known_images
from syncline.cluster.machines.scripted.programs import Program, program_of, runs_as_process
from syncline.kube.objects import Obj

DATA = """
images:
- {names: [migrate], runs: false, entrypoint: [/migrate, --all], cmd: [up], programs: {/migrate: migrate, /b: b}}
- {names: [gone], runs: true, entrypoint: [/gone], programs: {/gone: gone}}
- {names: [nameless], runs: true, entrypoint: [/nameless]}
"""
HAS = {"migrate": "/usr/bin/migrate"}
SHOWN = (("/migrate", "/usr/bin/migrate"),)


def book(text: str = DATA) -> ImageCache:
    metadata = {"namespace": "kube-system", "name": "syncline-images"}
    return known_images([{"kind": "ConfigMap", "metadata": metadata, "data": {"mine": text}}])


def find(name: str) -> str:
    return HAS.get(name, "")


CASES: list[tuple[str, Obj, Program | None]] = [
    ("a command is what runs", {"image": "x", "command": ["a"], "args": ["b"]}, Program(("a", "b"))),
    (
        "a command may call the programs of its image",
        {"image": "migrate", "command": ["/migrate", "down"]},
        Program(("/migrate", "down"), SHOWN),
    ),
    (
        "without words the entrypoint gets the image's own",
        {"image": "migrate:1"},
        Program(("/migrate", "--all", "up"), SHOWN),
    ),
    (
        "arguments take the place of the image's own",
        {"image": "migrate:1", "args": ["down"]},
        Program(("/migrate", "--all", "down"), SHOWN),
    ),
    ("a program that is not installed does not run", {"image": "gone"}, None),
    ("an entrypoint that is no program of the image does not run", {"image": "nameless"}, None),
    ("an image of which nothing is known does not run", {"image": "registry.example.org/x", "args": ["a"]}, None),
    ("an image without an entrypoint does not run", {"image": "nginx"}, None),
]


@pytest.mark.parametrize(("policy", "container", "expected"), CASES, ids=[case[0] for case in CASES])
def test_what_a_container_runs(policy: str, container: Obj, expected: Program | None) -> None:
    assert program_of(container, book(), find) == expected


def test_only_pods_that_end_run_the_program_of_their_image_unless_they_ask_for_it() -> None:
    container = {"name": "c", "image": "say"}
    images = book("images: [{names: [say], runs: true, entrypoint: [/say], programs: {/say: echo}}]")
    ends: Obj = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    stays: Obj = {"spec": {"containers": [container]}}
    asks: Obj = {"metadata": {"annotations": {"syncline.dev/run": "process"}}, **stays}
    assert [runs_as_process(pod, container, images, installed) for pod in (ends, stays, asks)] == [True, False, True]
    assert not runs_as_process(ends, container, book(), installed)


@pytest.mark.parametrize("wish", ["/etc/passwd", "../sh", "a/b", "", ".", "-x"])
def test_data_names_programs_and_no_files_of_the_machine(wish: str) -> None:
    problem = book(f"images: [{{names: [a], runs: true, programs: {{/a: '{wish}'}}}}]").problem
    assert "the name of a program" in problem
    assert installed("no-such-program") == "" and installed("sh").startswith("/usr/")


@pytest.mark.parametrize("path", ["a", "/a/../../b"])
def test_programs_are_shown_at_absolute_paths(path: str) -> None:
    assert (
        "is to be an absolute path" in book(f"images: [{{names: [a], runs: true, programs: {{{path}: sh}}}}]").problem
    )

"""Names of images as container runtimes read them."""

from __future__ import annotations

import pytest

from syncline.kube.text.images import image_problems, unreadable

LONG = "a" * 64
CASE = "invalid reference format: repository name ({}) must be lowercase"


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "library/nginx@sha256:" + LONG,
        "registry.example.org:5000/team/web:v1@sha256:" + LONG,
        "localhost/web",
        "[::1]:5000/web",
        "Registry/web",
        "a__b/c-d.e_f:Tag_1.x-y",
        f"{LONG}x",
    ],
)
def test_a_name_that_runtimes_read_has_no_problem(image: str) -> None:
    assert unreadable(image) == ""


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("nginx:", "invalid reference format"),
        ("nginx:latest:1", "invalid reference format"),
        ("nginx latest", "invalid reference format"),
        ("nginx\n", "invalid reference format"),
        ("-nginx", "invalid reference format"),
        ("web//front", "invalid reference format"),
        ("https://registry/web", "invalid reference format"),
        ("web:" + "a" * 129, "invalid reference format"),
        ("web@sha256:12", "invalid reference format"),
        ("web@sha256:" + "a" * 32, "invalid checksum digest length"),
        ("{{ .Values.image }}", CASE.format("library/{{ .Values.image }}")),
        ("Web", CASE.format("library/Web")),
        ("web/Front:1", CASE.format("web/Front")),
        (LONG, f"invalid repository name ({LONG}), cannot specify 64-byte hexadecimal strings"),
        ("a/" * 130 + "a", "repository name must not be more than 255 characters"),
        ("a" * 1_000_000, "invalid reference format"),
    ],
)
def test_a_name_that_no_runtime_reads_is_refused_in_the_kubelets_words(image: str, why: str) -> None:
    assert unreadable(image) == why


def test_images_are_found_in_pods_templates_and_init_containers_by_their_path() -> None:
    spec = {"initContainers": [{"image": "ok"}, {"image": "A"}], "containers": [{"image": "b:"}, {}, None]}
    (pod, also) = image_problems({"spec": spec})
    assert pod.startswith("spec.initContainers[1].image: found 'A', which no node can pull (InvalidImageName: ")
    assert also.startswith("spec.containers[0].image: found 'b:'")
    cron = {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
    assert image_problems(cron)[0].startswith("spec.jobTemplate.spec.template.spec.initContainers[1].image")
    assert image_problems({"spec": {"containers": "none", "template": []}}) == []

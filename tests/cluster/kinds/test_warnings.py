"""What is let through, with a word."""

from __future__ import annotations

from syncline.kube.objects import Obj

from .writing import pod, warnings, workload  # type: ignore[import-untyped]


def test_a_plain_pod_gives_no_reason_to_warn() -> None:
    assert warnings(pod()) == []


def test_a_variable_written_twice_is_warned_of() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    found = warnings(pod(containers=[{"name": "c", "image": "x", "env": twice}]))
    assert found == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
    ]


def test_thousandths_of_a_byte_are_warned_of_where_they_stand() -> None:
    container: Obj = {"name": "c", "image": "x", "resources": {"limits": {"memory": "100m", "cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    found = warnings(workload("Deployment", template=template))
    path = "spec.template.spec.containers[0].resources.limits[memory]"
    assert found == [f'{path}: fractional byte value "100m" is invalid, must be an integer']


def test_old_node_labels_are_named_with_their_successors() -> None:
    found = warnings(pod(nodeSelector={"beta.kubernetes.io/os": "linux"}))
    why = 'deprecated since v1.14; use "kubernetes.io/os" instead'
    assert found == [f"spec.nodeSelector[beta.kubernetes.io/os]: {why}"]

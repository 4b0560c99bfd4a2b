"""Facts of the target: what a Node object tells, and what ``ansible -m setup`` printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncline.sources.ansible.facts import facts_of, facts_of_node, read_facts
from syncline.sources.errors import SourceError

NODE = {
    "metadata": {"name": "w1", "labels": {"kubernetes.io/hostname": "w1.example.org"}},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "capacity": {"cpu": "4", "memory": "16Gi"},
        "nodeInfo": {
            "architecture": "arm64",
            "kernelVersion": "5.14.0",
            "osImage": "Red Hat Enterprise Linux CoreOS 9.6.2",
        },
    },
}


def test_a_node_tells_names_addresses_size_and_system() -> None:
    facts = facts_of_node(NODE)
    assert (facts["hostname"], facts["fqdn"]) == ("w1", "w1.example.org")
    assert (facts["architecture"], facts["kernel"], facts["default_ipv4"]) == (
        "aarch64",
        "5.14.0",
        {"address": "10.0.0.7"},
    )
    assert (facts["os_family"], facts["distribution_version"]) == ("RedHat", "9.6.2")
    assert (facts["processor_vcpus"], facts["memtotal_mb"]) == (4, 16384)


def test_what_a_node_does_not_tell_is_no_fact_and_a_task_that_needs_it_fails() -> None:
    facts = facts_of_node({"metadata": {"name": "n"}, "status": {"nodeInfo": {"osImage": "Simulated Linux"}}})
    assert not {"distribution", "os_family", "kernel", "default_ipv4", "memtotal_mb"} & set(facts)


def test_a_file_is_read_as_ansible_prints_it(tmp_path: Path) -> None:
    printed = tmp_path / "facts"
    printed.write_text('w1 | SUCCESS => {"ansible_facts": {"ansible_kernel": "6.1", "facter_x": 1}, "changed": false}')
    assert json.loads(read_facts(printed)) == {"ansible_kernel": "6.1", "ansible_facter_x": 1}
    printed.write_text("w1 | UNREACHABLE!")
    with pytest.raises(SourceError, match="not readable as JSON"):
        read_facts(printed)
    with pytest.raises(SourceError, match="facts are a JSON object, as `ansible -m setup` prints it"):
        facts_of([], "w1")

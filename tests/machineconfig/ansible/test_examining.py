"""What is refused of a playbook before any node is touched, by file and line, and what it says of disruption."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from syncline.machineconfig.ansible.content import MAX_FILES, ContentError, File, pack, unpack
from syncline.machineconfig.ansible.examining import Examined, examine
from syncline.machineconfig.ansible.plan import play_of
from syncline.machineconfig.ansible.reading import Found

HEAD = "- hosts: all\n  tasks:\n"
COLLECTION = "collections/ansible_collections/ansible/posix"


def seen(texts: dict[str, str], playbook: str = "site.yml", role: str = "") -> Examined:
    return examine({path: File(text.encode()) for path, text in texts.items()}, "" if role else playbook, role)


REFUSED = {
    "async": (HEAD + "    - command: x\n      async: 60\n", "site.yml:4: async is refused"),
    "serial": ("- hosts: all\n  serial: 2\n", "site.yml:2: serial is refused"),
    "run_once": (HEAD + "    - command: x\n      run_once: true\n", "site.yml:4: run_once is refused"),
    "delegate_to": (HEAD + "    - command: x\n      delegate_to: db\n", "site.yml:4: delegate_to is refused"),
    "in a block": (
        HEAD + "    - block:\n        - command: x\n      run_once: yes\n",
        "site.yml:5: run_once is refused",
    ),
    "in a rescue": (HEAD + "    - block: []\n      rescue:\n        - {command: x, async: 5}\n", "site.yml:5: async"),
    "vars_prompt": ("- hosts: all\n  vars_prompt: []\n", "site.yml:2: vars_prompt is refused"),
    "connection": ("- hosts: all\n  connection: ssh\n", "site.yml:2: connection is refused"),
    "a role that is not there": ("- hosts: all\n  roles: [gone]\n", "site.yml:2: role 'gone' is in none of"),
    "a file that is not there": (HEAD + "    - import_tasks: gone.yml\n", "site.yml:3: file 'gone.yml' is not in"),
    "what is no YAML": ("- hosts: [all\n", "site.yml"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_pool_orders_or_no_node_can_do_is_refused_by_file_and_line(name: str) -> None:
    text, refusal = REFUSED[name]
    found = seen({"site.yml": text}).refusals
    assert len(found) == 1 and refusal in found[0]


def test_a_refusal_is_found_in_roles_includes_handlers_and_behind_templates() -> None:
    bad = "- command: x\n  async: 1\n"
    texts = {
        "site.yml": "- hosts: all\n  roles: [{role: a}]\n  tasks:\n    - include_tasks: '{{ os }}.yml'\n",
        "roles/a/meta/main.yml": "dependencies: [b]\n",
        "roles/a/tasks/main.yml": "- ansible.builtin.include_tasks: {file: more.yml}\n",
        "roles/a/tasks/more.yml": bad,
        "roles/b/tasks/main.yml": "- include_role: {name: c, tasks_from: other}\n",
        "roles/b/handlers/main.yml": bad,
        "roles/c/tasks/other.yml": bad,
        "roles/c/tasks/main.yml": "- {command: x, run_once: true}\n",
        "debian.yml": bad,
    }
    found = {one.partition(":")[0] for one in seen(texts).refusals}
    places = {"roles/a/tasks/more.yml", "roles/b/handlers/main.yml", "roles/c/tasks/other.yml", "debian.yml"}
    assert found == places, "the main tasks of c are not reached"


def test_delegation_to_the_node_itself_and_what_is_switched_off_is_fine() -> None:
    text = HEAD + "    - {command: x, delegate_to: localhost, run_once: false, async: 0}\n"
    assert seen({"site.yml": text}).refusals == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "    - command: x\n", "None"),
        (HEAD + "    - {command: x, tags: [syncline.drain]}\n", "Drain"),
        (HEAD + "    - {command: x, tags: 'a, syncline.reboot'}\n", "Drain"),
        ("- hosts: all\n  tags: syncline.drain\n  tasks: []\n", "Drain"),
        (HEAD + "    - reboot:\n", "Drain"),
        (HEAD + "    - action: ansible.builtin.reboot\n", "Drain"),
    ],
)
def test_tasks_say_what_they_need_by_tags_and_by_rebooting(text: str, says: str) -> None:
    assert seen({"site.yml": text}).says == says


def judged(texts: dict[str, str], **spec: Any) -> tuple[str, ...]:
    files = {path: File(text.encode()) for path, text in texts.items()}
    config = {"metadata": {"name": "x"}, "spec": {"playbook": "site.yml", "pool": "worker"} | spec}
    return play_of(config, Found(datetime(2026, 1, 1, tzinfo=UTC), "a" * 40, files=files))[2]


def test_collections_are_pinned_and_there() -> None:
    site = {"site.yml": HEAD + "    - ansible.posix.sysctl: {name: a, value: b}\n"}
    there = site | {f"{COLLECTION}/MANIFEST.json": '{"collection_info": {"version": "1.6.2"}}'}
    pinned = [{"name": "ansible.posix", "version": "1.6.2"}]
    assert judged(there, collections=pinned) == ()
    assert "site.yml:3: ansible.posix.sysctl needs collection ansible.posix" in judged(there)[0]
    assert "is not in collections/ansible_collections/ansible/posix" in judged(site, collections=pinned)[0]
    other = [{"name": "ansible.posix", "version": "1.5.4"}]
    assert (
        "is pinned to 1.5.4" in judged(there, collections=other)[0]
        and "holds 1.6.2" in judged(there, collections=other)[0]
    )


def test_a_reboot_needs_a_disruption() -> None:
    site = {"site.yml": HEAD + "    - reboot:\n"}
    assert "site.yml:3: a task reboots the node" in judged(site, disruption="None")[0]
    assert judged(site, disruption="AsTasksSay") == judged(site, disruption="Drain") == ()


def test_times_have_bounds() -> None:
    site = {"site.yml": HEAD}
    assert "at least 1m" in judged(site, checkInterval="5s")[0] and judged(site, checkInterval="0s") == ()
    assert "at most 6h" in judged(site, timeout="7h")[0] and "more than 0s" in judged(site, timeout="0s")[0]


def test_an_archive_is_the_same_for_the_same_files_and_holds_no_others() -> None:
    files = {"b/run.sh": File(b"#!/bin/sh\n", True), "a": File(b"x")}
    assert pack(files) == pack(dict(reversed(files.items()))) and unpack(pack(files)) == files
    with pytest.raises(ContentError, match="name a smaller folder"):
        pack({f"a/{n}": File(b"") for n in range(MAX_FILES + 1)})
    for hostile in ("../etc/passwd", "/etc/passwd", "a//b"):
        with pytest.raises(ContentError, match="not one of ours"):
            unpack(pack({hostile: File(b"x")}))
    with pytest.raises(ContentError, match="cannot be read"):
        unpack(b"no archive")

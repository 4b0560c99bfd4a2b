"""Playbooks captured by the real ansible-playbook in a real throwaway root; each run costs seconds, so they are few."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from syncline.assembly.playbooks import PROGRAM
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.kube.objects import Obj
from syncline.sources.ansible.capturing import Outcome, Wish, capture
from syncline.sources.ansible.facts import facts_of, facts_of_node
from syncline.sources.ansible.launching import Play, find_program
from syncline.sources.ansible.observing import Run
from syncline.sources.ansible.producing import Output, produce
from syncline.sources.ansible.rooting import RootLimits, RootRunner, Wanted
from syncline.sources.errors import SourceError

try:
    find_program()
except SourceError as missing:
    pytest.skip(str(missing), allow_module_level=True)

pytestmark = pytest.mark.process
HEAD = "- hosts: worker\n  gather_facts: false\n  become: true\n"


def playbook(folder: Path, text: str) -> Wanted:
    (folder / "site.yml").write_text(HEAD + text)
    return Wanted(folder, "site.yml", Play("", inventory="[worker]\nlocalhost\n"), installed=("chrony",))


@pytest.fixture(autouse=True, scope="module")
def _roots(tmp_path_factory: pytest.TempPathFactory) -> None:
    if sandbox_problem():
        pytest.skip("this machine makes no root for playbooks")


def runner(wall_s: float = 600.0) -> RootRunner:
    return RootRunner(Path(PROGRAM), RootLimits(wall_s=wall_s, tmpfs_bytes=64 * 1024**2))


def captured(wanted: Wanted, **wish: Any) -> Outcome:
    return capture(runner(), wanted, Wish("worker", **wish))


def ran(wanted: Wanted, wall_s: float = 600.0) -> Run:
    return runner(wall_s).run(wanted)


def contents(objects: tuple[Obj, ...]) -> dict[str, tuple[str, int]]:
    files = objects[0]["spec"]["config"]["storage"]["files"]
    return {one["path"]: (_text(one["contents"]["source"]), one["mode"]) for one in files}


def _text(source: str) -> str:
    kind, _, data = source.partition(",")
    return base64.b64decode(data).decode() if "base64" in kind else unquote(data)


def inventory(folder: Path) -> Path:
    """In YAML, with variables beside it."""
    (folder / "group_vars").mkdir(parents=True)
    (folder / "group_vars" / "worker.yml").write_text("server: ntp.example.org\n")
    (folder / "inventory.yml").write_text("all: {children: {worker: {hosts: {web1: {}}}}}\n")
    return folder / "inventory.yml"


TASKS = """
  tasks:
    - setup:
    - template: {src: chrony.conf.j2, dest: /etc/chrony.conf, mode: "0640", group: chrony}
      notify: restart chronyd
    - lineinfile: {path: /etc/selinux/config, regexp: ^SELINUX=, line: SELINUX=permissive}
    - package: {name: [chrony, usbguard]}
    - shell: |
        sysctl -w vm.swappiness=1 && echo vm.swappiness=1 > /etc/sysctl.d/90-swap.conf
        rpm-ostree kargs --append=nosmt && systemctl mask cups.service && systemctl enable hello
        ln -s ../usr/share/zoneinfo/UTC /etc/zone && install -d -m 700 /etc/secret
        install -m 755 /dev/null /usr/local/bin/t
        mkdir -p ~core/.ssh && echo ssh-ed25519 AAAA > ~core/.ssh/authorized_keys && useradd -r -u 250 tool
    - {name: Stamp, shell: date +%s%N > /etc/stamp}
    - name: Special
      shell: |
        rm /etc/fstab; mkfifo /etc/pipe; install -m 4755 /dev/null /usr/local/bin/su; touch /home/core/x
        sysctl -w vm.dirty_ratio=1; modprobe br_netfilter; dnf install vim; systemctl stop other
  handlers:
    - {name: restart chronyd, service: {name: tuned, state: restarted, enabled: true}}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One playbook with much that can be captured, and some that cannot."""
    top = tmp_path_factory.mktemp("captured")
    project = top / "project"
    project.mkdir()
    (project / "chrony.conf.j2").write_text("server {{ server }} iburst # {{ ansible_facts.kernel }}\n")
    node = {"metadata": {"name": "w1"}, "status": {"nodeInfo": {"kernelVersion": "5.14.0"}}}
    facts = facts_of(facts_of_node(node), "w1")
    return captured(replace(playbook(project, TASKS), facts=facts, inventory=inventory(top / "fleet")), first_boot=True)


def test_a_playbook_becomes_the_config_that_it_leaves(found: Outcome) -> None:
    made = produce(found.captured, Output.MACHINE_CONFIG, pool="worker", name="x", first_boot=True)
    files = contents(made.objects)
    assert files["/etc/chrony.conf"] == ("server ntp.example.org iburst # 5.14.0\n", 0o640)
    assert files["/etc/selinux/config"][0] == "SELINUX=permissive\nSELINUXTYPE=targeted\n"
    assert files["/usr/local/bin/t"] == ("", 0o755)
    config, spec = made.objects[0]["spec"]["config"], made.objects[0]["spec"]
    assert [one["path"] for one in config["storage"]["directories"]] == ["/etc/secret"]
    assert [(one["path"], one["target"]) for one in config["storage"]["links"]] == [
        ("/etc/zone", "../usr/share/zoneinfo/UTC")
    ]
    assert config["systemd"]["units"] == [
        {"name": "cups.service", "mask": True},
        {"name": "hello.service", "enabled": True},
        {"name": "tuned.service", "enabled": True},
    ]
    users = {one["name"]: one for one in config["passwd"]["users"]}
    assert users["core"]["sshAuthorizedKeys"] == ["ssh-ed25519 AAAA"] and users["tool"]["uid"] == 250
    assert (spec["kernelArguments"], spec["extensions"]) == (["nosmt"], ["usbguard"])
    assert any("tuned is restarted by the reboot" in note for note in found.notes)


def test_refusals_name_task_file_and_line_all_at_once(found: Outcome) -> None:
    texts = sorted(str(one).replace(" (site.yml:", "|", 1).split("; ")[0] for one in found.refusals)
    assert texts == [
        'task "Special"|18): /etc/pipe is a device, pipe or socket',
        'task "Special"|18): /usr/local/bin/su has the special mode bits 4755',
        'task "Special"|18): it changes br_netfilter in the running kernel alone',
        'task "Special"|18): it changes vm.dirty_ratio in the running kernel alone',
        'task "Special"|18): it removes /etc/fstab',
        'task "Special"|18): it stops other.service and changes nothing that a boot would bring',
        'task "Special"|18): it writes /home/core/x, in the home of core',
        'task "Special"|18): the package vim comes with no extension of the OS',
        'task "Stamp"|17): /etc/stamp differs between two runs of the playbook',
    ]
    assert found.text == "" and found.objects == ()


def test_a_hostile_playbook_reaches_nothing_beyond_its_root(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("hunter2")
    project = tmp_path / "project"
    project.mkdir()
    found = ran(
        playbook(
            project,
            f"""
  tasks:
    - name: Attack
      shell: |
        cat /proc/1/environ /proc/1/mem {outside}/key ../../../..{outside}/key
        mknod /etc/disk b 8 0; /usr/bin/mount -t tmpfs none /mnt; unshare -Ur true && echo unshared
        echo x > /usr/bin/x; echo 1 > /proc/sys/vm/swappiness; echo b > /proc/sysrq-trigger
        kill -9 1; ls /dev/sd* /dev/vd*
        ln -s {outside} /etc/link && echo owned > /etc/link/key
        (echo > /dev/tcp/127.0.0.1/22) 2>&1; dd if=/dev/zero of=/var/full bs=1M count=200; rm -f /var/full
        ls -la {outside}
      args: {{executable: /bin/bash}}
      register: attack
      ignore_errors: true
    - copy: {{dest: /etc/report, content: "{{{{ attack.stdout }}}}{{{{ attack.stderr }}}}"}}
""",
        )
    )
    said = next(each.content or b"" for each in found.entries if each.path == "/etc/report").decode()
    assert (outside / "key").read_text() == "hunter2" and "hunter2" not in said
    for sentence in ("Read-only file system", "No space left on device", "/proc/1/environ: Permission denied"):
        assert sentence in said, said
    for word in ("unshared", "PATH=", "/dev/vd", "/dev/sda"):
        assert word not in said.replace("'/dev/vd*'", "").replace("'/dev/sd*'", "")
    assert not any(each.form.kind == "other" for each in found.entries)
    assert not os.path.ismount("/mnt")


def test_a_playbook_that_never_ends_is_ended_with_what_it_started(tmp_path: Path) -> None:
    tasks = """
  tasks:
    - {name: Fork, shell: "for i in 1 2 3; do (setsid sleep 86399 &); done; sleep 86399"}
"""
    found = ran(playbook(tmp_path, tasks), wall_s=20.0)
    assert found.report.why == 'the play was ended in task "Fork" (site.yml:6): it took longer than 20 seconds'
    left = [name for name in os.listdir("/proc") if name.isdigit() and _command(name) == b"sleep\x0086399\x00"]
    assert left == []


def _command(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""

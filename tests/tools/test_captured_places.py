"""A captured role leaves the same files by every way: a real capture costs seconds, so this is one test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.sources.ansible.launching import packages_folder
from syncline.sources.ansible.observing import Run
from syncline.sources.ansible.rooting import RootRunner, Wanted
from tools import compare_capture

pytestmark = pytest.mark.process
ROLE = {
    "tasks/main.yml": """
- template: {src: app.conf.j2, dest: /etc/app.conf, mode: "0640", group: core}
  notify: restart
- shell: |
    sed -i s/enforcing/permissive/ /etc/selinux/config
    install -m 755 /dev/null /usr/local/bin/app
    install -D -m 644 /dev/stdin /etc/systemd/system/sshd.service.d/10-app.conf <<< "[Service]"
  args: {executable: /bin/bash}
""",
    "handlers/main.yml": "- {name: restart, service: {name: sshd, state: restarted}}\n",
    "templates/app.conf.j2": "servers = {{ servers | join(' ') }}\n",
}
SITE = "- hosts: worker\n  gather_facts: false\n  roles: [{role: app, servers: [a.example, b.example]}]\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in ROLE.items():
        (tmp_path / "roles/app" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "roles/app" / name).write_text(text)
    (tmp_path / "site.yml").write_text(SITE)
    return tmp_path / "site.yml"


def _can_chroot() -> bool:
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return os.getuid() == 0 and done.returncode == 0


@pytest.mark.skipif(packages_folder() is None, reason="ansible-core is not installed")
@pytest.mark.skipif(not _can_chroot() or bool(sandbox_problem()), reason="this machine makes no root for playbooks")
def test_nodes_and_trees_have_the_files_that_ansible_alone_leaves(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # That two runs are equal is shown elsewhere: one stands for both.
    run, runs = RootRunner.run, list[Run]()

    def once(runner: RootRunner, wanted: Wanted) -> Run:
        if not runs:
            runs.append(run(runner, wanted))
        return runs[0]

    monkeypatch.setattr(RootRunner, "run", once)
    code = compare_capture.main([str(site), "--roles", str(site.parent / "roles"), "--applied"])
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line.startswith("/")}
    assert rows == dict.fromkeys(
        (
            "/etc/app.conf",
            "/etc/selinux/config",
            "/etc/systemd/system/sshd.service.d/10-app.conf",
            "/usr/local/bin/app",
        ),
        ["equal"] * 3,
    ), said
    assert code == 0, said

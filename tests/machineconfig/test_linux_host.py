"""The commands of a Linux host: real ones are bounded, those of a tree are done or refused without executing any."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.base.clock import SystemClock
from syncline.hosts.linuxhost import MAX_OUTPUT, LinuxHost, LinuxHosts, run_program
from syncline.machineconfig.agent.host import Done, HostError


def test_a_program_that_does_not_end_is_killed_with_its_children() -> None:
    done = run_program(["sh", "-c", "echo begun; sleep 600 & sleep 600"], 0.3)
    assert done == Done(124, "begun\nsh did not end within 0.3 s and was killed")


def test_output_is_bounded_and_both_streams_are_kept() -> None:
    assert len(run_program(["sh", "-c", "yes | head -c 1000000"], 30).output) == MAX_OUTPUT
    assert run_program(["sh", "-c", "echo a; echo b >&2; exit 3"], 30) == Done(3, "a\nb\n")
    assert run_program(["no-such-program"], 30) == Done(127, "no-such-program: no such file or directory")


@pytest.mark.parametrize(
    "command", ["systemctl restart crio.service", "systemctl daemon-reload", "rpm-ostree cleanup -p"]
)
def test_what_needs_a_running_system_is_refused_below_a_directory_and_skipped_offline(
    command: str, tmp_path: Path
) -> None:
    refused = LinuxHost(tmp_path, SystemClock()).run(command.split())
    assert refused.code == 1
    assert refused.output.startswith(f"{command} needs a running system")
    offline = LinuxHost(tmp_path, SystemClock(), offline=True)
    assert offline.run(command.split()).ok
    assert list(offline.notes) == [f"skipped: {command} (the system does not run)"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ID=debian\n", "debian"),
        ('ID="rhcos"\nVARIANT_ID=coreos\n', "rhcos"),
        ("ID=fedora\nVARIANT_ID=coreos\n", "fcos"),
        ("ID=fedora\nVARIANT_ID=server\n", "fedora"),
        ('ID="rhel"\nVARIANT_ID="coreos"\n', "rhcos"),
        ("", "linux"),
    ],
)
def test_systems_are_told_apart_by_os_release(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(text)
    assert LinuxHost(tmp_path, SystemClock()).os == name


def test_one_agent_works_on_a_root_at_a_time_and_a_directory_reboots_only_offline(tmp_path: Path) -> None:
    first, second = (LinuxHosts("edge", LinuxHost(tmp_path, SystemClock(), offline=on)) for on in (True, False))
    first.lock()
    with pytest.raises(HostError, match="another agent works there; end it first"):
        second.lock()
    second.unlock()
    with pytest.raises(HostError, match="cannot be rebooted"):
        second.reboot("edge", "a")
    boots = []
    for request in ("a", "a", "b"):
        first.reboot("edge", request)
        facts = first.facts("edge")
        assert facts is not None
        boots.append(facts.boot_id)
    assert boots[0] == boots[1] != boots[2]
    first.unlock()

"""What a machine that makes no sandbox says, and what to do then."""

from __future__ import annotations

import pytest

from syncline.cluster.machines.processes.launching import refusal

WHY = "this machine refuses user namespaces: Operation not permitted"
OPEN = {
    "kernel/unprivileged_userns_clone": "1",
    "user/max_user_namespaces": "15000",
    "kernel/apparmor_restrict_unprivileged_userns": "0",
}


@pytest.mark.parametrize(
    ("settings", "release", "filtered", "way"),
    [
        ({"kernel/unprivileged_userns_clone": "0"}, "6.1.0", False, "sysctl -w kernel.unprivileged_userns_clone=1"),
        ({"user/max_user_namespaces": "0"}, "6.1.0", False, "sysctl -w user.max_user_namespaces=15000"),
        (
            {"kernel/apparmor_restrict_unprivileged_userns": "1"},
            "6.8.0-31-generic",
            False,
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ({}, "5.10.0-23-amd64", False, "run Linux 5.12 or newer (this is 5.10.0-23-amd64)"),
        ({}, "6.1.0", True, "--security-opt seccomp=unconfined"),
        ({}, "6.1.0", False, "allow unprivileged user namespaces"),
    ],
)
def test_a_refusal_says_what_to_do(settings: dict[str, str], release: str, filtered: bool, way: str) -> None:
    said = refusal(WHY, OPEN | settings, release, filtered)
    assert said.startswith(f"commands cannot be sandboxed here: {WHY}; ")
    assert way in said
    assert "leave --run-commands out" in said
    assert "--run-commands=unsandboxed: commands then run as you, with your files, processes, network" in said


def test_only_what_is_wrong_is_named() -> None:
    said = refusal(WHY, OPEN | {"user/max_user_namespaces": "0"}, "6.1.0", True)
    assert "unprivileged_userns_clone" not in said and "seccomp" not in said and "newer" not in said

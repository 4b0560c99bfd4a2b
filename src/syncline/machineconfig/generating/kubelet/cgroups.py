"""Kernel arguments for the cgroup mode of config.openshift.io Node ``cluster``."""

from __future__ import annotations

from collections.abc import Sequence

_FIRST = ("systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1")
_SECOND = ("systemd.unified_cgroup_hierarchy=1", 'cgroup_no_v1="all"')


class CgroupError(ValueError):
    """The cgroup mode is unknown or no longer supported."""


def with_cgroup_arguments(mode: str, arguments: Sequence[str]) -> list[str]:
    """Return ``arguments`` with those of cgroup version 2 in place of version 1. Raises CgroupError for other modes."""
    if mode not in ("", "v2"):
        raise CgroupError(f"unknown cgroup mode found {mode}, failed to update the machine config resource")
    kept = [one for one in arguments if one not in _FIRST]
    return kept + [one for one in _SECOND if one not in kept]

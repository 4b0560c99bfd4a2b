"""The node agent as the Machine Config Operator's daemon: recorded answers of its functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.machineconfig.memory_host import MemoryHost
from tests.machineconfig.recordings import cases, judge, same_text
from tests.machineconfig.tree_host import TreeHost

from syncline.machineconfig.agent.actions import drain_needed, first_boot_actions, first_boot_drain, update_actions
from syncline.machineconfig.agent.files.disk import boot_difference, drift_of, watched_paths
from syncline.machineconfig.agent.files.users import set_passwords, update_keys
from syncline.machineconfig.agent.files.writing import UpdateError, update_files
from syncline.machineconfig.agent.planning.changes import (
    Changes,
    changed_files,
    changed_units,
    changes_between,
    config_of,
)
from syncline.machineconfig.agent.staging.kernel import (
    change_arguments,
    missing_arguments,
    parsed_arguments,
    running_of,
    split_arguments,
)
from syncline.machineconfig.configs.extensions import (
    ExtensionsError,
    change_packages,
    invalid_extensions,
    package_sets,
    packages_of,
)
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.drain.registries import RegistriesError
from syncline.machineconfig.policies.model import effective_policies

Make = Callable[[dict[str, Any]], MemoryHost | TreeHost]


def _id(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes the host of a case: one in memory, or Linux over a directory of its own."""
    if request.param == "memory":
        return MemoryHost.of
    return lambda given: TreeHost(tmp_path, given)


on_both_hosts = pytest.mark.parametrize("made", ["memory", "linux"], indirect=True)


@pytest.mark.parametrize("case", cases("kargs"), ids=_id)
def test_kernel_arguments(case: dict[str, Any]) -> None:
    given = case["input"]
    old, new, running = given.get("old"), given.get("new"), given.get("running") or ""
    got = {
        "oldParsed": parsed_arguments(old),
        "newParsed": parsed_arguments(new),
        "runningSplit": split_arguments(running),
        "commandArgs": change_arguments(old, new),
        "runningOfNew": running_of(new, running),
        "validateNew": missing_arguments(new, running),
    }
    judge(case, got == case["expect"], got)


@pytest.mark.parametrize("case", cases("extensions"), ids=_id)
def test_extensions(case: dict[str, Any]) -> None:
    given = case["input"]
    names = given.get("extensions")
    got: dict[str, Any] = {
        "commandArgs": change_packages(given.get("installed") or (), names),
        "invalid": invalid_extensions(names),
        "validPackageSets": {name: package_sets(name) for name in names or ()},
    }
    try:
        got["packages"] = packages_of(names)
    except ExtensionsError as error:
        got["packagesError"] = str(error)
    judge(case, got == case["expect"], got)


@pytest.mark.parametrize("case", cases("actions"), ids=_id)
def test_what_an_update_has_to_do(case: dict[str, Any]) -> None:
    got = _actions(case["input"])
    want = dict(case["expect"])
    if "errorWithoutPositions" in want:
        want["error"], got["error"] = want.pop("errorWithoutPositions"), str(got.get("error")).rstrip()
    for one in (got, want):
        if "actions" in one:
            one["actions"] = sorted(one["actions"], key=_text)
    texts = [(want.pop(name, None), got.pop(name, None)) for name in ("error", "drainError")]
    first_want, first_got = dict(want.pop("firstBoot", {})), dict(got.pop("firstBoot", {}))
    texts.append((first_want.pop("drainError", None), first_got.pop("drainError", None)))
    agrees = (got, first_got) == (want, first_want) and all(same_text(*pair) for pair in texts)
    judge(case, agrees, [got, first_got, texts])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _actions(given: dict[str, Any]) -> dict[str, Any]:
    old, new = given.get("old"), given["new"]
    try:
        changes = changes_between(old, new, forced=bool(given.get("forceFile")))
    except ConfigError as error:
        return {"error": str(error)}
    before, after = config_of(old), config_of(new)
    files, units = changed_files(before, after), changed_units(before, after)
    actions = update_actions(changes, files, units, effective_policies(given.get("policy")))
    first = first_boot_actions(changes, files)
    return {
        "diff": diff_of(changes),
        "changedFiles": files,
        "changedUnits": {"added": list(units.added), "removed": list(units.removed), "updated": list(units.updated)},
        "actions": [{"type": one.type, **({"service": one.service} if one.service else {})} for one in actions],
        **_drain(lambda: drain_needed(actions, before, after)),
        "firstBoot": {"actions": first, **_drain(lambda: first_boot_drain(first, files, before, after))},
        "forceFileLeft": False,
    }


def _drain(decide: Callable[[], bool]) -> dict[str, Any]:
    try:
        return {"drain": decide()}
    except RegistriesError as error:
        return {"drainError": str(error)}


def diff_of(changes: Changes) -> dict[str, Any]:
    return {
        "osUpdate": changes.os_update,
        "kargs": changes.kargs,
        "fips": changes.fips,
        "passwd": changes.passwd,
        "files": changes.files,
        "units": changes.units,
        "kernelType": changes.kernel_type,
        "extensions": changes.extensions,
        "oclEnabled": changes.image_mode,
        "revertFromOCL": changes.from_image_mode,
        "empty": changes.empty,
        "osChanges": changes.os_changes,
    }


@on_both_hosts
@pytest.mark.parametrize("case", cases("apply"), ids=_id)
def test_files_and_units_are_written(case: dict[str, Any], made: Make) -> None:
    given, want = case["input"], dict(case["expect"])
    host = made(given)
    before = host.snapshot()
    got: dict[str, Any] = {"error": None}
    try:
        old, new = (config_of({"spec": {"config": given[side]}}) for side in ("old", "new"))
    except ConfigError as error:
        judge(case, _agrees(want, str(error)), str(error))
        return
    units = changed_units(old, new)
    by_name = {unit["name"]: unit for unit in (new.get("systemd") or {}).get("units") or ()}
    try:
        update_files(
            host,
            old,
            new,
            [by_name[name] for name in (*units.added, *units.updated)],
            forced=bool(given.get("forceFile")),
            skip_certificate=bool(given.get("skipCertificateWrite")),
        )
    except UpdateError as error:
        got["error"] = str(error)
    got |= {"changed": host.changed(before), "removed": host.removed(before), "commands": host.commands}
    texts = (want.pop("error", None), got.pop("error"))
    want.pop("errorWithoutPositions", None)
    judge(case, same_text(*texts) and got == want, [got, texts])


def _agrees(want: dict[str, Any], got: str) -> bool:
    return same_text(want.get("errorWithoutPositions") or want.get("error"), got)


@on_both_hosts
@pytest.mark.parametrize("case", cases("users"), ids=_id)
def test_keys_and_passwords(case: dict[str, Any], made: Make) -> None:
    given, want = case["input"], dict(case["expect"])
    host = made(given)
    before = host.snapshot()
    users = (given.get("new") or [], given.get("old") or [])
    got: dict[str, Any] = {}
    for name, change in (("ssh", update_keys), ("password", set_passwords)):
        host.commands.clear()
        try:
            change(host, *users)
            got[f"{name}Error"] = None
        except UpdateError as error:
            got[f"{name}Error"] = str(error)
        got[f"{name}Commands"] = list(host.commands)
    got |= {"changed": host.changed(before), "removed": host.removed(before)}
    texts = [(want.pop(f"{name}Error"), got.pop(f"{name}Error")) for name in ("ssh", "password")]
    judge(case, got == want and all(same_text(*pair) for pair in texts), [got, texts])


@on_both_hosts
@pytest.mark.parametrize("case", cases("disk"), ids=_id)
def test_the_disk_is_compared(case: dict[str, Any], made: Make) -> None:
    given, want = case["input"], case["expect"]
    host = made(given)
    drift = drift_of(host, given["config"])
    boot = boot_difference(
        host,
        given["config"],
        booted_image=given.get("bootedImage") or "",
        running=given.get("runningKargs") or "",
        image=given.get("image") or "",
        finalize_failure=given.get("finalizeFailure") or "",
    )
    got: dict[str, Any] = {"driftKind": (drift.kind or None) if drift else None}
    try:
        got["watched"], got["watchedDirs"] = watched_paths(host, given["config"])
    except ConfigError as error:
        got["watchError"] = str(error)
    texts = [
        (want.get("driftWithoutPositions") or want["drift"], drift.text if drift else None),
        (want.get("bootWithoutPositions") or want["boot"], boot.text if boot else None),
        (want.get("watchErrorWithoutPositions") or want.get("watchError"), got.pop("watchError", None)),
    ]
    same = all(got.get(key) == want.get(key) for key in ("driftKind", "watched", "watchedDirs"))
    judge(case, same and all(same_text(*pair) for pair in texts), [got, texts])

"""Roll-outs of machine configs with every kind of fault at every kind of step: the laws hold, and all ends well.

``python -m tests.machineconfig.faults`` runs all of them, ``--replay`` one as it was printed: see
docs/machine-config-faults.md.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.conftest import Figure
from tests.machineconfig.faults.schedule import KINDS, drawn, read
from tests.machineconfig.faults.stories import EXPLORER

ONCE_BROKEN = {
    "update; kill@1~usermod": "the file of the system that was back already was deleted by the pass that did it again",
    "update; host-error@1~link": "files of which some were written kept the look at the disk from ever being passed",
    "update; host-error@1~remove /etc/systemd": "so did files of which some were taken away",
    "update; power@1~reboot": "what was staged is gone after a power cut, and the node stayed Degraded",
    "removal; kill-before@1~reboot, host-error@2~reboot": "a reboot that failed when it was tried again was forgotten",
    "removal; no-reboot@1, no-reboot@2": "a reboot that did not come twice was waited for, for ever",
    "pool; host-error@1~reboot": "what a failed reboot put back was written without a note that it is",
    "gentle; cordon@1": "an update without a drain uncordoned what a person had cordoned",
    "gentle; host-error@1": "that a node failed was refused, as its record was newer by its own writes",
    "update; late@60~worker-1: PATCH": "an agent behind its watch took back what the record said of the cordon",
    "update; cordon@60~worker-1: PATCH": "what a person had cordoned was uncordoned with the update's end",
    "gentle; clock+86400@4": "a timeline showed a node on its way for ever whose end was told by another clock",
    "gentle; clock-3600@18": "and one whose clock was put right meanwhile",
    "update; node-lost@32, deleted@36": "a node that joined anew before its reboot gave up what was staged for it",
    "update; deleted@19, node-lost@74, node-lost@110": "what half an Ignition had written of another config stayed",
    "update/1296; power-before@137, deleted@149": "a record made anew lost what it said of the cordon",
    "removal/515; no-config@22, deleted@53, no-reboot@54, late@64": "an agent behind its watch woke itself for ever",
    "removal; power@1, deleted@42": "or was Done without it",
    "update; stood-still@18": "a drain that was asked for by a late write kept a node cordoned that was Done",
    "update; clock-86400@3:controllers": "a clock that was put back let everything wait for a day",
}


@pytest.mark.parametrize("line", ONCE_BROKEN, ids=lambda line: line.split("; ")[1])
def test_schedules_that_broke_a_law_do_so_no_more(line: str) -> None:
    outcome = EXPLORER.simulate(read(line))
    assert outcome.held, outcome.line()
    assert outcome.struck, f"{line} strikes nowhere: {ONCE_BROKEN[line]}"


def test_a_schedule_is_read_as_it_is_printed() -> None:
    for line in (
        "update; kill@12, clock+86400@30:worker-0",
        "pool/7; lost-answer@3",
        "gentle; undisturbed",
        "update; kill@1~store",
    ):
        assert str(read(line)) == line
    assert {fault.kind for seed in range(200) for fault in drawn("update", seed, 100).faults} == set(KINDS)
    for wrong in ("update; kil@12", "update; kill@x", "update; kill"):
        with pytest.raises(ValueError, match="is no fault such as"):
            read(wrong)


def test_the_same_schedule_gives_the_same_steps() -> None:
    first, second = (EXPLORER.simulate(read("gentle/5; kill@9, gone@12")) for _ in range(2))
    assert first == second


LONG = bool(os.environ.get("SYNCLINE_LONG_TESTS"))
"""Every fault at every step of every story (an hour) instead of some."""
RUNS = {
    "a death after every step": "--stories removal --kinds kill --seeds 0",
    "a death after some steps around a pause": "--stories paused --kinds kill --every 3 --seeds 0",
    "a death after some steps of a playbook": "--stories playbook --kinds kill --every 9 --seeds 0",
    "late writes beside a successor": "--stories update --kinds stood-still --every 12 --seeds 0",
    "every fault at some steps": "--stories update pool masters --every 151 --seeds 1",
}


@pytest.mark.parametrize("run", RUNS)
def test_no_law_is_broken_whatever_goes_wrong(run: str, figure: Figure) -> None:
    """In a process of its own, which forks: here other threads may run."""
    words = ("--seeds 500" if LONG else RUNS[run]).split()
    done = subprocess.run(
        [sys.executable, "-m", "tests.machineconfig.faults", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    *_, schedules, _cost = done.stdout.splitlines() or ("", "")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    figure(f"faults of roll-outs, {run}", schedules)

"""Every numbered behaviour of the references about machine configs, Ignition and Butane has a test that names it.

``test_046_…`` and ``…_and_065_…`` are behaviours of the machine-config reference, in this folder; ``…_b046_b047`` are
those of the reference about Ignition and Butane, which the tests about Ignition itself write ``test_74_…``.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MACHINE_CONFIG, IGNITION = range(1, 76), range(1, 90)
TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def _names(*folders: str) -> list[str]:
    paths = (path for folder in folders for path in sorted((TESTS / folder).rglob("test_*.py")))
    return [name for path in paths for name in TEST.findall(path.read_text())]


def test_every_behaviour_of_the_machine_config_reference_is_tested() -> None:
    found = {
        int(number) for name in _names("machineconfig") for number in re.findall(r"(?:^test|_and)_(\d{3})(?=_)", name)
    }
    assert sorted(set(MACHINE_CONFIG) - found) == []


def test_every_behaviour_of_the_ignition_and_butane_reference_is_tested() -> None:
    named = _names("ignition", "cli")
    found = {int(number) for name in named for number in re.findall(r"_b(\d{3})(?=_|$)", name)}
    found |= {int(number) for name in _names("ignition") for number in re.findall(r"^test_(\d\d)_", name)}
    assert sorted(set(IGNITION) - found) == []

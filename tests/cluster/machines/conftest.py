"""Worlds with machines, for the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machine_world import MachineWorld


@pytest.fixture
def world() -> MachineWorld:
    return MachineWorld()

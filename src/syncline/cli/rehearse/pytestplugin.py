"""The plugin of pytest: files ``*.rehearsal.yaml`` are collected, and each scenario is an item for each of its seeds.

pytest finds it by the entry point ``pytest11`` and imports it at every start, so all else is imported when such a file
is collected. ``-p no:syncline`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from syncline.cli.rehearse.processes import Run

SUFFIX = ".rehearsal.yaml"
"""As of ``rehearsal/answer/ownlaws.py``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("syncline", "scenarios beside manifests (*.rehearsal.yaml)")
    group.addoption("--rehearsal-seeds", type=int, metavar="N", help="The seeds 1 to N, not those of the files.")
    group.addoption("--rehearsal-laws", metavar="FILE", help="A file of yours with laws in Python.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    if not file_path.name.endswith(SUFFIX) or file_path.is_symlink():
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


class Failed(Exception):
    """A scenario did not go as it expects; the text is that of ``syncline test``."""


class ScenarioFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from syncline.cli.rehearse.processes import Run, laws_for
        from syncline.rehearsal.scenario import ScenarioError
        from syncline.rehearsal.testing.reading import MAX_SEEDS, read_cases

        given = self.config.getoption("--rehearsal-laws")
        laws, count = Path(given) if given else None, self.config.getoption("--rehearsal-seeds")
        if count is not None and not 1 <= count <= MAX_SEEDS:
            raise pytest.UsageError(f"--rehearsal-seeds {count}: allowed: 1 to {MAX_SEEDS}")
        try:
            cases = read_cases(self.path, laws_for(self.path, laws))
        except ScenarioError as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            for seed in range(1, count + 1) if count is not None else case.seeds:
                run = Run(self.path, case.name, seed, laws)
                yield ScenarioItem.from_parent(self, name=f"{case.name}[{seed}]", run=run)


class ScenarioItem(pytest.Item):
    """One scenario with one seed."""

    def __init__(self, *, run: Run, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run

    def runtest(self) -> None:
        from syncline.base.scratch import scratch
        from syncline.cli.rehearse.processes import run_here
        from syncline.cli.views.rehearsal.results import describe_failure

        with scratch() as place:
            result = run_here(self.run, place)
        if not result.passed:
            raise Failed(describe_failure(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name

"""Bugs that are planted in controllers as patches of one function, for explorations to find."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Bug:
    """``function`` of ``module`` with ``edits``. ``law``: what it breaks in some order."""

    name: str
    about: str
    world: str
    """``machines`` or ``fleet``, and the scenario."""
    scenario: str
    law: str
    module: str
    function: str
    edits: tuple[tuple[str, str], ...]
    """What is there once, and what is there instead."""
    rests: bool = False
    """It shows only when the world is judged at rest."""

    def target(self) -> FunctionType:
        found: Any = import_module(self.module)
        for part in self.function.split("."):
            found = getattr(found, part)
        assert isinstance(found, FunctionType), f"{self.module}.{self.function} is no function"
        return found

    def code(self) -> CodeType:
        """Return the code with the bug. Raises AssertionError if the patch does not apply."""
        target = self.target()
        source = textwrap.dedent(inspect.getsource(target))
        for sound, faulty in self.edits:
            found = source.count(sound)
            assert found == 1, f"{self.name}: {sound!r} is {found} times in {self.module}.{self.function}"
            source = source.replace(sound, faulty)
        made: dict[str, Any] = {}
        body = "from __future__ import annotations\n" + source
        exec(compile(body, f"<planted {self.name}>", "exec"), {**target.__globals__}, made)
        function: Callable[..., Any] = made[target.__name__]
        assert isinstance(function, FunctionType) and not function.__code__.co_freevars, "it stands alone"
        return function.__code__

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Let every caller meet the bug, whichever way it imported the function."""
        target = self.target()
        sound = target.__code__
        target.__code__ = self.code()
        try:
            yield
        finally:
            target.__code__ = sound


BUGS = (
    Bug(
        "hook",
        "the Application controller does not recognise a hook that its operation has made before it died",
        "fleet",
        "roll-out-to-three",
        "once",
        "syncline.gitops.sync.decide",
        "is_stamped",
        (("return wanted and annotations_of(task.live).get(OPERATION) == stamp", "return False"),),
    ),
    Bug(
        "order",
        "a roll-out takes what a cluster said of the release before for what it says of this one",
        "fleet",
        "roll-out-to-three",
        "order",
        "syncline.fleet.pull.order.evidence",
        "judge",
        (
            ("if facts.release is not None and facts.release != release:", "if False:"),
            ("if len(pins) == 1 and facts.revision.lower() != pins[0].lower():", "if False:"),
        ),
    ),
    Bug(
        "budget",
        "a roll-out permits a release before it has reserved its place in the budgets",
        "fleet",
        "roll-out-to-three",
        "budget",
        "syncline.fleet.pull.order.plan",
        "plan_group",
        (("proofs, *order.reservations, write)", "proofs, write, *order.reservations)"),),
    ),
    Bug(
        "drain",
        "the drain cordons a node in one write and notes that it did so in another",
        "machines",
        "removal",
        "converges",
        "syncline.machineconfig.drain.plan",
        "_begin",
        (
            (
                'patch = _write(observed.node, notes, "its agent asks for a drain", unschedulable=True)',
                'cordon = _write(observed.node, {}, "its agent asks for a drain", unschedulable=True)\n'
                '    patch = replace(cordon, body={"metadata": {"annotations": notes}})',
            ),
            ("(patch, *events)", "(cordon, patch, *events)"),
        ),
    ),
    Bug(
        "pool",
        "the pool counts a node as down when its agent says so, not as soon as it has a new target",
        "machines",
        "masters",
        "budget",
        "syncline.machineconfig.pools.nodestate",
        "_read",
        (("(not done and not failing)", "(state != DONE and not failing)"),),
    ),
    Bug(
        "render",
        "the render controller gives a pool the name of a config only in the pass that makes it",
        "machines",
        "gentle",
        "foretold",
        "syncline.machineconfig.render.plan",
        "plan_render",
        (("if configuration:", "if configuration and decision.create is not None:"),),
        rests=True,
    ),
)

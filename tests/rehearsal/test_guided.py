"""Which orders could matter is found in one run, tried first, and finds bugs that blind schedules find later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
from tests.machineconfig.faults.stories import EXPLORER, STORIES, traced
from tests.rehearsal.planted.planting import BUGS, Bug

from syncline.rehearsal.faults import AROUND, AT_WRITES, Schedule, by_name
from syncline.rehearsal.guided.accesses import Place, Turn
from syncline.rehearsal.guided.batches import Batch, Exploration, begun_apart, ended_apart
from syncline.rehearsal.guided.conflicts import Conflict, Order, conflicts
from syncline.rehearsal.guided.drawing import BLIND, Guide
from syncline.rehearsal.guided.keeping import Kept, KeptError
from syncline.rehearsal.verdict import Verdict

NODE, POOL = "/nodes n", "/pools p"
SPEC, DESIRED, STATE = (
    Place(NODE, ("spec",)),
    Place(NODE, ("metadata", "annotations", "desired")),
    Place(NODE, ("metadata", "annotations", "state")),
)


def turn(who: str, after: int, reads: set[Place], **writes: set[Place]) -> Turn:
    return Turn(
        who,
        f"{who}-controller" if who else "",
        after,
        frozenset(reads),
        tuple((int(k[1:]), frozenset(v)) for k, v in writes.items()),
    )


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        (
            [turn("pool", 0, set(), s1={DESIRED}), turn("agent", 1, {DESIRED}, s2={STATE})],
            [(Order.SEEN, 1, 2, "agent")],
        ),
        (
            [turn("pool", 0, {STATE}, s1={DESIRED}), turn("agent", 1, set(), s2={STATE})],
            [(Order.DECIDED, 1, 2, "pool")],
        ),
        ([turn("pool", 0, set(), s1={SPEC}), turn("drain", 1, set(), s2={SPEC})], [(Order.OVERWRITTEN, 1, 2, "pool")]),
        ([turn("agent", 0, {STATE}, s1={STATE}, s2={DESIRED})], [(Order.BETWEEN, 1, 2, "agent")]),
        ([turn("pool", 0, set(), s1={DESIRED}), turn("agent", 1, {STATE}, s2={STATE})], []),
        ([turn("pool", 0, set(), s1={DESIRED}), turn("", 1, set(), s1={STATE})], []),
    ],
    ids=[
        "a write that another process read",
        "a decision from what another process wrote then",
        "a field that two write",
        "a process may die between what it reads again",
        "other fields of one object do not conflict",
        "nor does what the cluster writes by itself",
    ],
)
def test_accesses_conflict_where_they_meet_and_one_writes(
    turns: list[Turn], found: list[tuple[Order, int, int, str]]
) -> None:
    assert [(one.order, one.first, one.second, one.who) for one in conflicts(turns)] == found


def test_only_neighbouring_accesses_conflict() -> None:
    """Reversing the first and the last of three is reversing what is between."""
    turns = [turn("a", 0, set(), s1={SPEC}), turn("b", 1, set(), s2={SPEC}), turn("c", 2, {SPEC}, s3={STATE})]
    orders = [(one.order, one.first, one.second) for one in conflicts(turns)]
    assert orders == [(Order.OVERWRITTEN, 1, 2), (Order.SEEN, 2, 3)]


def _conflict(order: Order, first: int, node: str) -> Conflict:
    return Conflict(order, first, first + 1, "controllers", "pool", "agent", Place(f"/nodes {node}", ("spec",)))


GUIDE = Guide(
    "update",
    40,
    by_name(*AT_WRITES, *AROUND),
    tuple(_conflict(order, 1 + 2 * n, f"n{n}") for n in range(9) for order in (Order.SEEN, Order.BETWEEN)),
)


def test_one_pair_of_each_shape_is_tried_before_another_node_like_it() -> None:
    first = GUIDE.attempts(1)[:4]
    assert {(one.conflict.order, one.fault.kind) for one in first[:2]} == {
        (Order.SEEN, "late"),
        (Order.BETWEEN, "kill"),
    }
    assert len({(one.conflict.shape, one.fault.kind) for one in GUIDE.attempts(1)[:5]}) == 5


def test_a_seed_draws_the_same_schedules_with_blind_ones_among_them() -> None:
    found, again, other = (list(islice(GUIDE.schedules(seed), 80)) for seed in (7, 7, 8))
    assert found == again != other
    assert found[BLIND - 1 :: BLIND] == [GUIDE.blind(7, number) for number in range(BLIND, 81, BLIND)]
    assert len(set(found)) == 80


def test_what_comes_between_two_writes_of_a_pass_strikes_before_the_others_of_its_schedule() -> None:
    attempts = GUIDE.attempts(3)
    torn = {one.fault for one in attempts if one.conflict.order is Order.BETWEEN}
    guided = (one for number, one in enumerate(islice(GUIDE.schedules(3), len(torn)), 1) if number % BLIND)
    with_torn = [one.faults for one in guided if torn & set(one.faults)]
    assert with_torn
    for faults in with_torn:
        assert faults[0] in torn and not torn & set(faults[1:])


@pytest.fixture(scope="module")
def gentle() -> Exploration:  # type: ignore[type-arg]
    return Exploration(EXPLORER, "gentle", traced)


def test_tracing_changes_nothing(gentle: Exploration) -> None:  # type: ignore[type-arg]
    journals = []
    for trace in (False, True):
        world = STORIES["gentle"].world()
        if trace:
            traced(world)
        EXPLORER.simulate(Schedule("gentle"), world=world)
        journals.append(world.journal.text())
    assert journals[0] == journals[1]


def test_pairs_are_named_by_their_controllers_and_fields(gentle: Exploration) -> None:  # type: ignore[type-arg]
    said = [str(one) for one in gentle.conflicts]
    assert any("machine-config-agent | machine-config-pool: nodes worker-0" in one for one in said)
    assert any("machine-config-drain" in one and one.endswith("desiredDrain") for one in said)
    assert not any("/events" in one or "/leases" in one for one in said)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_applies_cleanly_and_is_taken_away(bug: Bug) -> None:
    sound = bug.target().__code__
    with bug.planted():
        assert bug.target().__code__ is not sound
    assert bug.target().__code__ is sound


def found(exploration: Exploration, total: int) -> Iterator[int]:  # type: ignore[type-arg]
    for batch in exploration.batches(total, {}):
        yield from batch.broken


def test_exploration_finds_a_planted_bug() -> None:
    bug = next(one for one in BUGS if one.name == "drain")
    with bug.planted():
        exploration = Exploration(replace(EXPLORER, rests=False), bug.scenario, traced, seed=2, size=16)
        assert next(found(exploration, 16), None) is not None


def test_a_branch_meets_the_undisturbed_run_and_settles_what_another_fault_makes_of_it() -> None:
    """It is the only branch, so there is no other run that it could meet."""

    def branched() -> list[object]:
        found: list[Verdict] = []
        EXPLORER.branched(
            "gentle", ["error", "kill"], lambda step, kind: (step.number, kind) == (5, "error"), found.append
        )
        return [one.to_obj() for one in found]

    (only,) = map(Verdict.of_obj, ended_apart(*begun_apart(branched)))
    assert only.held and only.merged and only.same > 0


def test_neither_processes_nor_interruptions_change_what_is_run(gentle: Exploration) -> None:  # type: ignore[type-arg]
    def figures(kept: Kept[Batch]) -> list[tuple[int, int, int, int, int]]:
        each = sorted(kept.parts.items())
        return [(number, one.schedules, one.merged, one.states, one.checks) for number, one in each]

    alone = Exploration(EXPLORER, "gentle", traced, size=2)
    whole: Kept[Batch] = Kept(alone.about())
    parts: Kept[Batch] = Kept(alone.about())
    for batch in alone.batches(6, {}):
        whole.add(batch)
    several = Exploration(EXPLORER, "gentle", traced, size=2, processes=2)
    file = parts.text() + parts.add(next(several.batches(6, {}))) + '{"number":2,"sched'  # killed while it wrote
    parts = Kept.read(file, several.about(), Batch.of_obj)
    assert len(parts.parts) == 1
    for batch in several.batches(6, parts.parts):
        assert batch.number not in parts.parts
        parts.add(batch)
    assert figures(parts) == figures(whole)
    assert len(alone.untried(6)) < len(alone.untried(2)) < len(alone.conflicts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]\n", "found no exploration of format 1"),
        ('{"format": 2}\n', "found no exploration of format 1"),
        (
            '{"format": 1, "scenario": "update", "seed": 2}\n',
            "it explores scenario 'update', and 'gentle' was asked for",
        ),
        ('{"format": 1, "scenario": "gentle", "seed": 2}\n', "it explores seed 2, and 1 was asked for"),
        ('{"format": 1, "scenario": "gentle", "seed": 1}\n{"number": 3}\n', "a line of it is no part"),
    ],
)
def test_a_file_of_another_exploration_is_refused(text: str, said: str) -> None:
    with pytest.raises(KeptError) as error:
        Kept.read(text, {"scenario": "gentle", "seed": 1}, Batch.of_obj)
    assert said in str(error.value)

"""Expressions of strangers: few steps must not make much memory, nor take long."""

from __future__ import annotations

import resource

import pytest

from syncline.kube.cel.program import compile_program
from syncline.kube.cel.types import DYN
from syncline.kube.cel.values import EvaluationError

EXCEEDED = "actual cost limit exceeded"
LONG = "a," * 20_000
BOMBS = {
    "a text that doubles": "['aaaaaaaaaa']" + ".map(a, a + a)" * 40 + "[0].size() > 0",
    "a list that doubles": "[[1, 2, 3, 4]]" + ".map(a, a + a)" * 40 + "[0].size() > 0",
    "a list that holds itself twice": "[dyn([1])]" + ".map(a, dyn([a, a]))" * 40 + " == [dyn([[1]])]",
    "the same, looked for": "[dyn([1])]" + ".map(a, dyn([a, a]))" * 40 + " in [dyn([[1]])]",
    "the same, printed": "'%s'.format([[dyn([1])]" + ".map(a, dyn([a, a]))" * 40 + "]).size() > 0",
    "a replacement that grows": f"'{'a' * 1000}'" + ".replace('a', 'aaaaaaaaaa')" * 6 + ".size() > 0",
    "a long separator": "lists.range(20000).map(x, '').join('" + "x" * 2_000 + "').size() > 0",
    "a text split again and again": f"'{LONG}'.split(',').map(x, '{LONG}'.split(',')).size() > 0",
    "all against all": "lists.range(5000).all(x, lists.range(5000).all(y, x + y >= 0))",
}
MOST_GROWTH_KB = 200 * 1024


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_put_out_before_it_grows(bomb: str) -> None:
    program = compile_program(bomb, {"self": DYN})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EvaluationError, match=EXCEEDED):
        program.evaluate({"self": {}})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KB


def test_a_precision_beyond_all_sense_is_refused() -> None:
    with pytest.raises(EvaluationError, match="precision 100000000 is too large"):
        compile_program("'%.100000000f'.format([1.0]).size() > 0", {}).evaluate({})


@pytest.mark.parametrize(
    "honest",
    [
        "lists.range(5000).map(x, x + 1).size() == 5000",
        "lists.range(2000).map(x, string(x)).join(',').split(',').size() == 2000",
        "[1, 2].map(x, [1, 2].map(y, [x * y])) == [1, 2].map(x, [1, 2].map(y, [y * x]))",
        "lists.range(100).all(x, lists.range(100).exists(y, [[x, y], [x]] == [[x, y], [x]]))",
        "'x'.replace('x', 'yyyyyyyyyy').replace('y', 'zzzzzzzzzz').size() == 100",
    ],
)
def test_honest_work_is_done(honest: str) -> None:
    assert compile_program(honest, {}).evaluate({}) is True

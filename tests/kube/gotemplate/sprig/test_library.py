"""Which functions exist, which depend on the moment or on chance, and what those draw."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from tests.kube.gotemplate.sprig.functions import NOW, call, failure

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.sprig.library import IMPURE, SPRIG, sprig_functions
from syncline.kube.gotemplate.template import Limits, TemplateError, parse

DRAWS = (
    '{{ randAlphaNum 9 }} {{ randAlpha 9 }} {{ randNumeric 9 }} {{ randAscii 9 }} {{ uuidv4 }} {{ shuffle "abcdef" }} '
    '{{ randInt 1 1000 }} {{ randBytes 9 }} {{ encryptAES "k" "text" }}'
)


def render(template: str, seed: int = 0, limits: Limits | None = None) -> str:
    functions = sprig_functions(lambda: NOW, Entropy(seed))
    return parse("", template, functions, limits=limits or Limits()).render({})


@pytest.mark.parametrize("name", ["env", "expandenv", "getHostByName"])
def test_b45_the_environment_and_the_network_are_out_of_reach(name: str) -> None:
    with pytest.raises(TemplateError, match=f'function "{name}" not defined'):
        render(f'{{{{ {name} "HOME" }}}}')


def test_all_other_208_functions_of_sprig_exist() -> None:
    functions = sprig_functions(lambda: NOW, Entropy(0))
    assert len(functions) == 208
    assert functions.keys() - SPRIG.keys() == IMPURE | {"derivePassword"}


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    assert render(DRAWS, 1) == render(DRAWS, 1) != render(DRAWS, 2)


def test_random_texts_have_their_alphabet_and_length() -> None:
    for seed in range(20):
        assert call("randAlpha", 30, seed=seed).isalpha()
        assert call("randNumeric", 30, seed=seed).isdigit()
        assert call("randAscii", 30, seed=seed).isascii()
        assert any(char.isdigit() for char in call("randAlphaNum", 2, seed=seed))
        assert 3 <= call("randInt", 3, 5, seed=seed) < 5
    assert len(base64.b64decode(call("randBytes", 30))) == 30
    assert sorted(call("shuffle", "héllo")) == sorted("héllo")
    assert call("randAlpha", -1) == call("randAlphaNum", 0) == ""
    assert failure("randInt", 5, 5) == "invalid argument to Intn"


def test_the_present_moment_comes_from_the_caller() -> None:
    assert render('{{ now }} {{ now | date "2006-01-02" }} {{ htmlDate nil }} {{ date "15:04" "text" }}') == (
        "2026-01-02 03:04:05 +0000 UTC 2026-01-02 2026-01-02 03:04"
    )
    past = int((NOW - timedelta(seconds=90)).timestamp())
    assert (
        render(f"{{{{ ago {past} }}}} {{{{ ago nil }}}} {{{{ durationRound (toDate `2006` `2020`) }}}}")
        == "1m30s 0s 6y"
    )


@pytest.mark.parametrize(
    "body",
    [
        "{{ toStrings $big | len }}",
        "{{ toJson $big | len }}",
        "{{ has $big (list $big) }}",
        "{{ deepCopy $big | len }}",
        '{{ regexFind ".{0,900}z" (repeat 2000 "y") }}',
        '{{ semverCompare ">1 || <2 || ^3 || ~4" "1.2.3" }}',
        "{{ mulf 1e300 1e300 1e300 }}",
        "{{ randBytes 3000 }}",
    ],
)
def test_a_loop_over_an_expensive_call_ends_by_the_steps_of_the_rendering(body: str) -> None:
    template = f"{{{{ $big := list (until 1000) (until 1000) }}}}{{{{ range until 1000 }}}}{body}{{{{ end }}}}"
    with pytest.raises(TemplateError, match="too many steps"):
        render(template, limits=Limits(steps=40_000, output=1 << 20))

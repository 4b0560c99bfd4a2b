"""Evaluations that take long are left to another process: the loop does a bounded part, the answer is the same."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from tests.cluster.admission.hooks import GROUP, MAPS, MERGE, World, hook, label
from tests.cluster.admission.test_policies import CORE, policy

from syncline.cluster.access.users import ADMIN
from syncline.cluster.serving.evaluators import Evaluators
from syncline.cluster.verbs.body import read_apart
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.transport import elsewhere as seam
from syncline.kube.transport.outbound import Computation, Outcome

TEN = "[0,1,2,3,4,5,6,7,8,9]"
LONG = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d < 99))))"
"""About 60,000 steps."""
CAN = "authorizer.group('').resource('configmaps').namespace('demo').check('create').allowed()"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOXES = "/apis/example.com/v1/namespaces/demo/boxes"

POLICIES: dict[str, tuple[Obj, bool]] = {
    "a validation that holds": ({"validations": [{"expression": LONG}]}, False),
    "a validation that denies": (
        {"validations": [{"expression": f"!{LONG}", "messageExpression": "'no ' + object.metadata.name"}]},
        False,
    ),
    "a variable": (
        {"variables": [{"name": "v", "expression": LONG}], "validations": [{"expression": "!variables.v"}]},
        False,
    ),
    "a condition": (
        {"matchConditions": [{"name": "c", "expression": LONG}], "validations": [{"expression": "false"}]},
        False,
    ),
    "an audit annotation": (
        {
            "auditAnnotations": [{"key": "said", "valueExpression": f"{LONG} ? 'yes' : 'no'"}],
            "validations": [{"expression": "namespaceObject.metadata.name == 'demo'"}],
        },
        False,
    ),
    "a question to the authorizer": ({"validations": [{"expression": f"{LONG} && !{CAN}"}]}, False),
    "a mutation": (
        {
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": LONG + "? Object{metadata: Object.metadata{labels: {'a': 'b'}}} : Object{}"
                    },
                },
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": f"{LONG} ? [JSONPatch{{op: 'add', path: '/data/x', value: 'y'}}] : []"},
                },
            ]
        },
        True,
    ),
}


class Far:
    """What hosts the API, with errands that cross a border of processes."""

    def __init__(self, world: World) -> None:
        self.world, self.computations = world, 0

    def answer(self, method: str, path: str, body: Obj) -> Response:
        answer = self.world.api.begin(Request(method, path, {}, {}, body), ADMIN)
        while answer.pending is not None:
            answer = answer.pending.resume([self._done(one) for one in answer.pending.calls])
        return answer

    def _done(self, one: Any) -> Outcome:
        if not isinstance(one, Computation):
            assert self.world.api.caller is not None
            return self.world.api.caller(one)
        self.computations += 1
        function, arguments = pickle.loads(pickle.dumps((one.function, one.arguments)))
        return Outcome(value=pickle.loads(pickle.dumps(function(*arguments))))


def said(answer: Response) -> Any:
    """Without what two requests differ in."""
    obj = dict(answer.obj)
    obj["metadata"] = {**obj.get("metadata", {}), "uid": "", "resourceVersion": "", "name": ""}
    return answer.status, obj, answer.annotations


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[seam.Here]:
    """What each run of a request was given: what is left of it at its end."""
    made: list[seam.Here] = []
    keeping_to = seam.keeping_to

    def noted(here: seam.Here) -> Any:
        made.append(here)
        return keeping_to(here)

    monkeypatch.setattr("syncline.cluster.serving.waiting.keeping_to", noted)
    monkeypatch.setattr("syncline.cluster.api.keeping_to", noted)
    return made


@pytest.mark.parametrize("case", POLICIES)
def test_a_policy_that_takes_long_is_judged_elsewhere_with_the_same_answer(case: str, steps: list[seam.Here]) -> None:
    spec, mutating = POLICIES[case]
    world = World()
    policy(world, spec, mutating=mutating)
    in_place = world.send("POST", MAPS, {"metadata": {"name": "menu"}, "data": {"k": "v"}})
    world.send("DELETE", f"{MAPS}/menu")
    far = Far(world)
    answer = far.answer("POST", MAPS, {"metadata": {"name": "menu"}, "data": {"k": "v"}})
    assert said(answer) == said(in_place)
    assert far.computations
    assert steps and all(-10 <= each.meter.left <= seam.STEPS_HERE for each in steps)


def test_a_condition_of_a_webhook_that_takes_long_is_judged_elsewhere() -> None:
    world = World({"/label": label("seen")})
    world.configure(hook("/label", matchConditions=[{"name": "c", "expression": LONG}]), mutating=True)
    far = Far(world)
    body = {"metadata": {"name": "menu", "labels": {"a": "b"}}}
    assert far.answer("POST", MAPS, body).obj["metadata"]["labels"]["seen"] == "yes"
    assert far.computations == 2, "once for each object: the label makes another one"


def definition(*rules: Obj, default: Any = None) -> Obj:
    note = {"type": "string", "maxLength": 10, **({"default": default} if default is not None else {})}
    if default is not None:
        note["x-kubernetes-validations"] = list(rules)
    of_spec = {} if default is not None else {"x-kubernetes-validations": list(rules)}
    spec = {"type": "object", "properties": {"note": note}, **of_spec}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
    return {
        "metadata": {"name": "boxes.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


@pytest.mark.parametrize("rule", [LONG, f"!({LONG})", f"self.note == 'x' || !({LONG})"])
def test_a_rule_of_a_definition_that_takes_long_is_judged_elsewhere(rule: str) -> None:
    world = World()
    world.made(CRDS, definition({"rule": rule, "message": "says no"}))
    body = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": {"note": "n"}}
    in_place = world.send("POST", BOXES, body)
    world.send("DELETE", f"{BOXES}/a")
    far = Far(world)
    assert said(far.answer("POST", BOXES, body)) == said(in_place)
    assert far.computations == 1


def test_what_is_short_is_judged_in_place() -> None:
    world = World()
    policy(world, {"validations": [{"expression": "object.metadata.name != 'no'"}]}, rule=CORE)
    far = Far(world)
    assert far.answer("POST", MAPS, {"metadata": {"name": "menu"}}).status == 201
    assert far.computations == 0


def test_what_took_long_is_given_away_at_once_for_a_while(steps: list[seam.Here]) -> None:
    world = World()
    policy(world, {"validations": [{"expression": LONG}]})
    far = Far(world)
    for number in range(seam.TRIED_AGAIN + 2):
        assert far.answer("POST", MAPS, {"metadata": {"name": f"menu-{number}"}}).status == 201
    tried = [each for each in steps if each.meter.left < seam.STEPS_HERE]
    assert len(tried) == 2, "the first, and one of those that follow"
    assert far.computations == seam.TRIED_AGAIN + 2


def test_an_object_that_changed_meanwhile_is_judged_again() -> None:
    """The answer counts for the object that was judged: a patch of what somebody else changed is another object."""
    world = World()
    policy(world, {"validations": [{"expression": f"!{LONG} || object.data.k != 'bad'"}]})
    world.map("menu", k="good")
    request = Request("PATCH", f"{MAPS}/menu", {}, {"content-type": MERGE}, {"data": {"n": "1"}})
    answer = world.api.begin(request, ADMIN)
    assert answer.pending is not None
    world.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/bound")
    world.send("PUT", f"{MAPS}/menu", {"metadata": {"name": "menu"}, "data": {"k": "bad"}})
    binding = {"policyName": "rule", "validationActions": ["Deny"]}
    world.made(f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "bound"}, "spec": binding})
    while answer.pending is not None:
        [computation] = answer.pending.calls
        assert isinstance(computation, Computation)
        answer = answer.pending.resume([Outcome(value=computation.function(*computation.arguments))])
    assert answer.status == 422


def test_a_child_answers_and_one_that_fails_says_so() -> None:
    async def asked() -> list[Outcome]:
        evaluators = Evaluators()
        try:
            good = await evaluators.run(Computation(read_apart, (b"a: 1\n",), "jane"))
            bad = await evaluators.run(Computation(int, ("x",), "jane"))
            again = await evaluators.run(Computation(read_apart, (b"b: 1\n",), "jane"))
            assert evaluators.started == 1
            return [good, bad, again]
        finally:
            evaluators.close()

    good, bad, again = asyncio.run(asked())
    assert (good.value.raw, again.value.raw) == (b'{"a":1}', b'{"b":1}')
    assert bad.error is not None and "ValueError" in bad.error.message


def test_a_child_that_died_is_replaced() -> None:
    async def asked() -> tuple[Outcome, Outcome]:
        evaluators = Evaluators()
        try:
            import os

            died = await evaluators.run(Computation(os._exit, (1,)))
            return died, await evaluators.run(Computation(read_apart, (b"a: 1\n",)))
        finally:
            evaluators.close()

    died, after = asyncio.run(asked())
    assert died.error is not None and died.error.code == 500
    assert after.value.raw == b'{"a":1}'

"""Laws of a repository are CEL: checked at every version, bounded, and refused where they are written wrongly."""

from __future__ import annotations

from datetime import timedelta

import pytest

from syncline.base.clock import EPOCH
from syncline.base.journal import Entry
from syncline.kube.objects import Obj, ref_of
from syncline.rehearsal.answer.laws import breaches_of
from syncline.rehearsal.answer.ownlaws import FIRST_LINE, own_laws
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.record import Ending, Record, Version
from syncline.rehearsal.scenario import ScenarioError


def web(replicas: int) -> Obj:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


def record(*replicas: int) -> Record:
    versions = tuple(
        Version(EPOCH + timedelta(seconds=10 * n), ref_of(web(0)), web(count)) for n, count in enumerate(replicas)
    )
    journal = (Entry(EPOCH + timedelta(seconds=15), "gitops", "web", "delete"),)
    return Record(EPOCH + timedelta(seconds=5), EPOCH + timedelta(hours=1), Ending.DONE, None, journal, versions, ())


def found(law: str, *replicas: int) -> list[tuple[str, float]]:
    laws = own_laws(Files({"a.rehearsal.yaml": f"{FIRST_LINE}\nlaws:\n- {law}\n".encode()}))
    return [(breach.found, breach.at_s) for breach in breaches_of(record(*replicas), laws)]


def test_a_law_about_a_kind_holds_at_each_version_since_the_commit() -> None:
    law = "{name: two, kind: apps/Deployment, must: object.spec.replicas >= 2}"
    assert found(law, 1, 2, 3) == [], "what was before the commit is not judged"
    assert found(law, 2, 2, 1) == [("Deployment shop/web breaks the law", 15)]


def test_a_law_may_compare_with_the_version_before() -> None:
    law = "{name: grows, kind: Deployment, must: 'before == null || object.spec.replicas >= before.spec.replicas'}"
    assert found(law, 1, 2, 2) == []
    assert found(law, 3, 2, 2) == [("Deployment shop/web breaks the law", 5)]


def test_a_law_without_a_kind_is_about_the_end_and_the_journal() -> None:
    assert found("{name: one, must: 'objects.size() == 1 && journal.all(e, e.at < 60.0)'}", 1, 2) == []
    law = "{name: keeps, must: '!journal.exists(e, e.what.startsWith(\"delete\"))'}"
    assert found(law, 1) == [("at the end, it breaks the law", 3595)]


def test_what_cannot_be_evaluated_breaks_its_law() -> None:
    ((text, _),) = found("{name: odd, kind: Deployment, must: object.spec.colour == 'red'}", 1, 1)
    assert "cannot be judged: no such key: colour" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("laws: []\n", "the first line is not"),
        (f"{FIRST_LINE}\nlawz: []\n", "found the key 'lawz'; allowed: laws, scenarios"),
        (f"{FIRST_LINE}\nlaws: [{{name: A, must: 'true'}}]\n", "laws[0].name: found 'A'"),
        (f"{FIRST_LINE}\nlaws: [{{name: a}}]\n", "found no must; allowed: an expression in CEL"),
        (f"{FIRST_LINE}\nlaws: [{{name: a, must: object.x}}]\n", "CEL with the variables objects, journal"),
        (f"{FIRST_LINE}\nlaws: [{{name: a, must: 1 + 1}}]\n", "one that is true or false"),
        (f"{FIRST_LINE}\nlaws: [{{name: rests, must: 'true'}}]\n", "found the name rests twice"),
    ],
)
def test_a_law_that_is_written_wrongly_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        own_laws(Files({"a.rehearsal.yaml": text.encode()}))
    assert said in str(error.value) and "a.rehearsal.yaml" in str(error.value)

"""The cache hands out objects in order, whatever order they came and went in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, name_of, namespace_of

PODS = GroupKind("", "Pod")
STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from("xyz"), st.sampled_from("abcde"), st.booleans()), max_size=40)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_objects_are_ordered_by_namespace_and_name_after_any_changes(steps: list[tuple[bool, str, str, bool]]) -> None:
    """``looked``: somebody asks in between, so that what is remembered must be forgotten at the right time."""
    cache = Cache(Mapper())
    there: set[tuple[str, str]] = set()
    for arrives, namespace, name, looked in steps:
        if arrives:
            cache.put(PODS, {"kind": "Pod", "metadata": {"namespace": namespace, "name": name}})
            there.add((namespace, name))
        else:
            cache.drop(PODS, namespace, name)
            there.discard((namespace, name))
        if looked:
            assert [(namespace_of(each), name_of(each)) for each in cache.objects(PODS)] == sorted(there)
    for namespace in "xyz":
        found = [name_of(each) for each in cache.objects(PODS, namespace)]
        assert found == sorted(name for space, name in there if space == namespace)

"""The cache hands out objects in order, whatever order they came and went in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.control.cache import Cache, OfKind
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, labels_of, name_of, namespace_of, owner_references
from syncline.kube.selectors import NOTHING, parse_label_selector

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


def test_a_view_is_made_once_for_each_version_of_an_object_and_kept_in_order() -> None:
    cache = Cache(Mapper())
    made: list[str] = []

    def view(obj: Obj) -> str:
        made.append(name_of(obj))
        return f"{name_of(obj)}{obj['v']}"

    def put(name: str, version: int) -> None:
        cache.put(PODS, {"kind": "Pod", "v": version, "metadata": {"namespace": "x", "name": name}})

    for name in "cab":
        put(name, 1)
    assert cache.views(PODS, view) == ["a1", "b1", "c1"]
    put("b", 2)
    cache.drop(PODS, "x", "c")
    put("d", 1)
    made.clear()
    assert cache.views(PODS, view) == ["a1", "b2", "d1"]
    assert made == ["b", "d"]
    assert cache.views(PODS, view) == ["a1", "b2", "d1"] and made == ["b", "d"]


LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b"]))
OWNERS = st.lists(st.tuples(st.sampled_from(["u1", "u2"]), st.booleans()), max_size=2)
WRITES = st.lists(st.tuples(st.booleans(), st.sampled_from("xy"), st.sampled_from("abcd"), LABELS, OWNERS), max_size=30)
SELECTORS = ["app=a", "app=a,tier=b", "app in (a,b)", "app!=a", "tier", "!tier", "app=c", ""]


@settings(max_examples=100, deadline=None)
@given(WRITES, st.integers(0, 30))
def test_indices_answer_as_a_look_at_everything_would(
    writes: list[tuple[bool, str, str, dict[str, str], list[tuple[str, bool]]]], asked_at: int
) -> None:
    """Whenever somebody asks first, and whatever changes after that."""
    cache = Cache(Mapper(), {"tier": OfKind(PODS, lambda obj: (labels_of(obj).get("tier", ""),))})
    for number, (arrives, namespace, name, labels, owners) in enumerate(writes):
        if arrives:
            references = [{"uid": uid, "controller": controls} for uid, controls in owners]
            metadata = {"namespace": namespace, "name": name, "labels": labels, "ownerReferences": references}
            cache.put(PODS, {"kind": "Pod", "metadata": metadata})
        else:
            cache.drop(PODS, namespace, name)
        cache.put(GroupKind("", "Secret"), {"kind": "Secret", "metadata": {"namespace": namespace, "name": name}})
        if number >= asked_at:
            _compare_with_scan(cache)
    _compare_with_scan(cache)


def _summary(pod: Obj) -> tuple[str, str, dict[str, str]]:
    return namespace_of(pod), name_of(pod), labels_of(pod)


def _compare_with_scan(cache: Cache) -> None:
    for namespace in "xyz":
        pods = cache.objects(PODS, namespace)
        for text in SELECTORS:
            selector = parse_label_selector(text)
            expected = [pod for pod in pods if selector.matches(labels_of(pod))]
            assert cache.selected(PODS, namespace, selector) == expected
        assert cache.selected(PODS, namespace, NOTHING) == []
        free = [pod for pod in pods if not any(each["controller"] for each in owner_references(pod))]
        assert cache.uncontrolled(PODS, namespace) == free
    everything = cache.objects(PODS)
    assert cache.views(PODS, _summary) == [_summary(pod) for pod in everything]
    for uid in ("u1", "u2"):
        assert cache.owned(uid) == [pod for pod in everything if uid in [o["uid"] for o in owner_references(pod)]]
    for tier in ("", "a", "b"):
        tiered = [pod for pod in everything if labels_of(pod).get("tier", "") == tier]
        assert cache.indexed("tier", tier) == tiered
        assert cache.count("tier", tier) == len(tiered)
        assert cache.first("tier", tier) == (tiered[0] if tiered else None)

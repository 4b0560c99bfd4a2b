"""Hashes that name what a template makes."""

from __future__ import annotations

import json
import time

from syncline.cluster.builtin.workloads.templates import MAX_HASHED, fnv32a, safe_encode, template_hash
from syncline.kube.objects import Obj


def template(env: str) -> Obj:
    return {"spec": {"containers": [{"name": "c", "env": [{"name": "E", "value": env}]}]}}


def test_a_template_is_named_by_what_it_holds() -> None:
    text = json.dumps(template("a"), sort_keys=True, separators=(",", ":")).encode()
    assert template_hash(template("a")) == safe_encode(fnv32a(text))
    assert template_hash(template("a"), 1) == safe_encode(fnv32a(text + b"1"))


def test_a_template_of_a_megabyte_is_named_by_all_of_it_in_a_moment() -> None:
    large = "x" * (1 << 20)
    spent = []
    for _ in range(3):
        begun = time.thread_time()
        names = {template_hash(template(large + end), collisions) for end in "ab" for collisions in (None, 1)}
        spent.append(time.thread_time() - begun)
        assert len(names) == 4 and len(large) > MAX_HASHED
    assert min(spent) < 0.3, "the best of three, computing alone; byte by byte each took 0.15 seconds and more"

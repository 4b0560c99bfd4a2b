"""Order over clusters in virtual time: five clusters with their agents and their own GitOps controllers."""

from __future__ import annotations

from tests.fleet.order.worlds import WAVES, carried, five, ordered_set, push, rollout, until
from tests.fleet.test_pull_controllers import SETS


def test_clusters_get_a_release_wave_by_wave_when_the_one_before_proved_it() -> None:
    fleet = five()
    fleet.hub.send("POST", SETS, ordered_set())
    until(fleet, 900, "Done")
    assert carried(fleet) == dict.fromkeys(WAVES, "v1")
    push(fleet, "v2")
    seen: list[set[str]] = []
    for _ in range(900):
        fleet.time.advance(1)
        new = {name for name, revision in carried(fleet).items() if revision == "v2"}
        if not seen or new != seen[-1]:
            seen.append(new)
        if rollout(fleet)["status"]["phase"] == "Done" and len(new) == 5:
            break
    waves = [sorted(WAVES[name] for name in one) for one in seen]
    assert waves[-1] == [0, 1, 1, 2, 2], rollout(fleet)["status"]
    assert all(one in ([], [0], [0, 1], [0, 1, 1], [0, 1, 1, 2], [0, 1, 1, 2, 2]) for one in waves)

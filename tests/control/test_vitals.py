"""What probes are answered: a restart only where it helps, a reason wherever work stands still."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from syncline.base.clock import EPOCH
from syncline.control.vitals import Complaints, Health, LeaseSigns, Signs, WatchSigns, verdict
from syncline.kube.errors import Forbidden, Unanswered

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NOW = EPOCH + timedelta(hours=1)
STANDBY = "held by b"


def signs(moved: datetime = NOW, **watches: WatchSigns) -> Signs:
    own = WatchSigns(NOW, needed=True, listed=True)
    return Signs(moved, discovery="", watches={"apps": own, "maps": WatchSigns(NOW, listed=True)} | watches)


def troubled(since: datetime, *, needed: bool = False, listed: bool = True) -> WatchSigns:
    return WatchSigns(NOW, "nothing listens there", since, needed, listed)


AWAY = signs(apps=troubled(NOW - MINUTE, needed=True), maps=troubled(NOW - MINUTE))
LEASES = LeaseSigns(NOW, why=STANDBY)
NONE = timedelta(0)
ROWS = {
    "all is well": (signs(), LEASES, NONE, (200, 200), ""),
    "a standby is alive and ready": (signs(NOW - 60 * MINUTE), LEASES, NONE, (200, 200), ""),
    "work that is long due and does not move is restarted": (
        signs(NOW - 6 * MINUTE),
        LEASES,
        6 * MINUTE,
        (503, 503),
        "the oldest key is due for 360 s and no pass began or ended for 360 s",
    ),
    "work that is long due but moves is only much": (signs(NOW - SECOND), LEASES, 60 * MINUTE, (200, 200), ""),
    "an idle process is well however long nothing moved": (signs(NOW - 600 * MINUTE), LEASES, NONE, (200, 200), ""),
    "an API that is away is not mended by a restart": (
        AWAY,
        LEASES,
        NONE,
        (200, 503),
        "cannot be watched: apps, maps: nothing listens there",
    ),
    "a watch that is opened again makes nobody unready": (
        signs(apps=troubled(NOW - SECOND, needed=True)),
        LEASES,
        NONE,
        (200, 200),
        "",
    ),
    "one kind that cannot be watched is worth a note": (
        signs(maps=troubled(NOW - MINUTE)),
        LEASES,
        NONE,
        (200, 200),
        "note: cannot be watched: maps: nothing listens there",
    ),
    "a watch that neither hears nor tries is stuck": (
        signs(maps=WatchSigns(NOW - 16 * MINUTE)),
        LEASES,
        NONE,
        (503, 503),
        "nothing was heard or tried for 900 s of maps",
    ),
    "what is worked on has to be listed first": (
        signs(apps=WatchSigns(NOW, needed=True)),
        LEASES,
        NONE,
        (200, 503),
        "not listed yet: apps",
    ),
    "before discovery nothing is ready": (Signs(NOW), LEASES, NONE, (200, 503), "discovery has not been tried yet"),
    "Leases that are not looked at are stuck": (
        signs(),
        LeaseSigns(NOW - 2 * MINUTE),
        NONE,
        (503, 503),
        "Leases were not read for 120 s",
    ),
    "Leases that cannot be renewed make unready": (
        signs(),
        LeaseSigns(NOW, "Leases cannot be read: away", NOW - MINUTE),
        NONE,
        (200, 503),
        "Leases cannot be read: away",
    ),
    "a Lease that is free and not taken is stuck": (
        signs(),
        LeaseSigns(NOW, vacant_since=NOW - 2 * MINUTE, why="free"),
        NONE,
        (503, 503),
        "a Lease lies free for 120 s and is not taken: free",
    ),
    "one that cannot be taken for a reason has that reason": (
        signs(),
        LeaseSigns(NOW, "forbidden", NOW - MINUTE, NOW - 2 * MINUTE),
        NONE,
        (200, 503),
        "forbidden",
    ),
    "without Leases nothing is missed": (signs(), None, NONE, (200, 200), ""),
}


@pytest.mark.parametrize("name", ROWS)
def test_policy(name: str) -> None:
    observed, leases, overdue, wanted, text = ROWS[name]
    found = verdict(observed, leases, overdue, NOW)
    alive, ready = found.answer(ready=False), found.answer(ready=True)
    assert (alive[0], ready[0]) == wanted
    assert text in ready[1]
    assert (ready[1] == "ok\n") == (wanted[1] == 200 and not text)


def test_watches_in_process_may_be_silent() -> None:
    quiet = signs(maps=WatchSigns(NOW - 600 * MINUTE))
    quiet.by_the_clock = False
    assert verdict(quiet, None, NONE, NOW) == Health()


def test_trouble_has_a_beginning_and_an_end() -> None:
    observed = signs()
    observed.watched("maps", NOW, trouble="refused")
    observed.watched("maps", NOW + MINUTE)
    observed.watched("maps", NOW + MINUTE, trouble="refused again")
    assert observed.watches["maps"] == WatchSigns(NOW + MINUTE, "refused again", NOW, listed=True)
    observed.watched("maps", NOW + 2 * MINUTE, trouble="")
    assert observed.watches["maps"] == WatchSigns(NOW + 2 * MINUTE, listed=True)


def test_one_sentence_a_minute_for_each_cause() -> None:
    told = Complaints()
    away = Unanswered("the server https://a cannot be reached: nothing listens there")
    assert [told.due(away, NOW + second * SECOND) for second in (0, 1, 59, 60, 61)] == [True, False, False, True, False]
    refused = Unanswered("the server https://a cannot be reached: Connection reset by peer")
    leases = Unanswered("Leases cannot be read: the server https://a cannot be reached: it did not answer in time")
    assert not told.due(refused, NOW + 62 * SECOND)
    assert not told.due(leases, NOW + 63 * SECOND)
    assert told.due(Forbidden("no"), NOW + SECOND)

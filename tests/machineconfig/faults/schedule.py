"""The kinds of faults that roll-outs of machine configs meet: of every process, of machines, and by people."""

from __future__ import annotations

from functools import partial

import syncline.rehearsal.faults as faults
from syncline.rehearsal.faults import AROUND, AT_WRITES, Kind, On

KINDS = faults.by_name(
    *AT_WRITES,
    Kind("host-error", On.HOST, "the operation of the machine fails: input/output error"),
    Kind("no-reboot", On.HOST, "the next reboot that is asked for does not happen", only="reboot"),
    Kind("power-before", On.ANY, "the machine loses its power right before the step, for two minutes", 120),
    Kind("power", On.ANY, "the machine loses its power right after the step, for two minutes", 120),
    Kind("node-lost", On.ANY, "the machine is off for half an hour", 1800),
    Kind("deleted", On.ANY, "the node is deleted, and two minutes later there is a new machine of its name", 120),
    *AROUND,
    Kind("pause", On.ANY, "a person pauses the pool, for five minutes", 300),
    Kind("hold", On.ANY, "a person holds the pool, for five minutes", 300),
    Kind("new-config", On.ANY, "a person applies another config"),
    Kind("no-config", On.ANY, "a person deletes the config that is being rolled out"),
    Kind("blocked", On.ANY, "a budget allows no eviction, for 25 minutes", 1500),
    Kind("cordon", On.ANY, "a person cordons a node that is in service"),
)

read = partial(faults.read, kinds=KINDS)
drawn = partial(faults.drawn, kinds=KINDS)

"""Names of MachineConfigs generated from KubeletConfigs and ContainerRuntimeConfigs.

The first object of a pool gets ``99-POOL-generated-kubelet``, later ones append ``-1`` to ``-9``, so the newest has the
last name. An annotation of the object stores its suffix. Source: reference machine-config 1.5 and 1.6.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, meta, name_of
from syncline.kube.schema.fieldcauses import quoted
from syncline.kube.selectors import SelectorError, label_selector_from

SUFFIX = "machineconfiguration.openshift.io/mc-name-suffix"
MAX_SUFFIX = 9
_ATOI = re.compile(r"[+-]?[0-9]+")
_NEVER = datetime.min.replace(tzinfo=UTC)


class GeneratedError(ValueError):
    """No name is available; the message becomes the object's condition."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A kind of generated config. ``part``: its part of the name; ``limit``: the error for the eleventh object."""

    part: str
    limit: str


KUBELET = Generator(
    "kubelet",
    "max number of supported kubelet config (10) has been reached. Please delete old kubelet configs before retrying",
)
RUNTIME = Generator(
    "containerruntime",
    "max number of supported ctrcfgs (10) has been reached. Please delete old ctrcfgs before retrying",
)


def deprecated_name(generator: Generator, pool: Obj) -> str:
    """Return the name used by old releases; such a MachineConfig is recreated under its new name and deleted."""
    return f"99-{name_of(pool)}-{meta(pool).get('uid') or ''}-{generator.part}"


def generated_name(
    generator: Generator, pool: Obj, config: Obj, configs: Collection[Obj], existing: Collection[str]
) -> str:
    """Return the name of the MachineConfig that ``config`` generates for ``pool``. ``configs``: all of its kind;
    ``existing``: names of all MachineConfigs. Raises GeneratedError.

    The annotation decides if present. A single config needs no suffix; an older one without annotation reuses the
    highest of its finalizers that is a MachineConfig; any other gets the highest suffix plus one.
    """
    first = f"99-{name_of(pool)}-generated-{generator.part}"
    mine = [one for one in configs if _selects(one, pool)]
    known = next((one for one in mine if name_of(one) == name_of(config)), None)
    if known is not None and SUFFIX in annotations_of(known):
        suffix = annotations_of(known)[SUFFIX]
        return f"{first}-{suffix}" if suffix else first
    if len(mine) <= 1:
        # Objects that select no pool count upstream, so the suffix then begins with 1.
        return first if mine or not configs else _next(generator, first, mine)
    if any(_made(one) > _made(config) for one in mine):
        kept = _from_finalizers(first, config, existing)
        if kept:
            return kept
    return _next(generator, first, mine)


def _selects(config: Obj, pool: Obj) -> bool:
    try:
        selector = label_selector_from(dig(config, "spec", "machineConfigPoolSelector"))
    except SelectorError as error:
        raise GeneratedError(f"invalid label selector: {error}") from error
    return not selector.empty and selector.matches(labels_of(pool))


def _made(config: Obj) -> datetime:
    text = meta(config).get("creationTimestamp")
    return parse_time(str(text)) if text else _NEVER


def _from_finalizers(first: str, config: Obj, existing: Collection[str]) -> str:
    best, highest = "", -1
    for name in meta(config).get("finalizers") or ():
        if name not in existing or not name.startswith(first):
            continue
        tail = name.rsplit("-", 1)[-1]
        if not _ATOI.fullmatch(tail) and name != first:
            continue
        number = int(tail) if _ATOI.fullmatch(tail) else 0
        if number > highest:
            best, highest = name, number
    return best


def _next(generator: Generator, first: str, mine: Iterable[Obj]) -> str:
    highest = 0
    for one in mine:
        text = annotations_of(one).get(SUFFIX)
        if not text:
            continue
        if not _ATOI.fullmatch(text):
            raise GeneratedError(
                f"error converting {text} to int: strconv.Atoi: parsing {quoted(text)}: invalid syntax"
            )
        highest = max(highest, int(text))
    if highest + 1 > MAX_SUFFIX:
        raise GeneratedError(generator.limit)
    return f"{first}-{highest + 1}"

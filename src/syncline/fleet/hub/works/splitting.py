"""Splits a ManifestWork that we make and that is too large for one object; pure. :func:`split_work`.

Works of people are never split: the admission of works refuses those (``admission.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from syncline.fleet.hub.works.admission import manifest_size
from syncline.kube.objects import Obj, name_of, namespace_of


class TooLarge(ValueError):
    """One manifest alone is larger than a work may be."""

    def __init__(self, manifest: Obj, size: int, limit: int) -> None:
        where = f"{namespace_of(manifest)}/" if namespace_of(manifest) else ""
        super().__init__(
            f"{manifest.get('kind')} {where}{name_of(manifest)} is {size} bytes as encoded, and a ManifestWork carries "
            f"at most {limit}; one object cannot be split"
        )


def grouped(manifests: Iterable[Obj], limit: int) -> tuple[tuple[Obj, ...], ...]:
    """Return the manifests in their order, in as few groups as possible, each of at most ``limit`` encoded bytes.

    Raises :class:`TooLarge` for a manifest that fits into no group.
    """
    groups: list[list[Obj]] = []
    room = 0
    for one in manifests:
        size = manifest_size(one)
        if size > limit:
            raise TooLarge(one, size, limit)
        if size > room or not groups:
            groups.append([])
            room = limit
        groups[-1].append(one)
        room -= size
    return tuple(map(tuple, groups))


def part_prefix(work: str) -> str:
    """Return how the names of the parts of a work begin."""
    return f"{work}-part-"


def split_work(work: Obj, limit: int, *, shared: Mapping[str, Obj]) -> tuple[Obj, ...]:
    """Return the works that carry the manifests of ``work`` together, in the order in which they are written.

    The last one is the work itself, with the last manifests. The parts before it are named ``WORK-part-N``; they have
    the metadata ``shared``, the namespace and the deletion option of the work, and no rules. Mostly there is one work,
    as given. Raises :class:`TooLarge`.
    """
    *before, last = grouped(work["spec"]["workload"]["manifests"], limit)
    if not before:
        return (work,)
    spec, name = work["spec"], name_of(work)
    option = {"deleteOption": spec["deleteOption"]} if "deleteOption" in spec else {}
    parts = (
        {
            **work,
            "metadata": {"name": f"{part_prefix(name)}{number}", "namespace": namespace_of(work), **shared},
            "spec": {"workload": {"manifests": list(manifests)}, **option},
        }
        for number, manifests in enumerate(before, 1)
    )
    return (*parts, {**work, "spec": {**spec, "workload": {"manifests": list(last)}}})

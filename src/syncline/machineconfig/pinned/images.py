"""The list of images that a machine pins, and CRI-O's drop-in for it; pure.

Source: Machine Config Operator ``uniqueSortedImageNames`` and ``createCrioConfigFileBytes``.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncline.kube.objects import Obj
from syncline.machineconfig.generating.runtime import toml

PINNED_PATH = "/etc/crio/crio.conf.d/50-pinned-images"
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space that Go trims."""


def image_names(images: Iterable[Obj]) -> list[str]:
    """Return the image names of all sets, sorted, without blanks and duplicates."""
    names = {str(image.get("name") or "") for image in images}
    return sorted(name for name in names if name.strip(_SPACE))


def pinned_file(names: list[str]) -> str:
    return toml.write({"crio": {"image": {"pinned_images": names or None}}})

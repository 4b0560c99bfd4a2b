"""What an exploration has done so far, as the text of a file: :class:`Kept`. A killed one goes on where it was.

The first line says what is explored, each further one is a batch; a line that a death cut off is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.rehearsal.guided.batches import Batch
from syncline.rehearsal.verdict import Verdict

FORMAT = 1
MAX_TEXT = 256 * 2**20
"""Maximum characters of a file."""


class KeptError(Exception):
    """The text is of no exploration, or of another one; the message names what was found and what is allowed."""


@dataclass
class Kept:
    """``about``: what is explored, as plain values by name; a file of another one is refused."""

    about: Mapping[str, Any]
    batches: dict[int, Batch] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, about: Mapping[str, Any]) -> Kept:
        """Return what a file holds; an empty one is that of a new exploration. Raises KeptError."""
        kept = cls(about)
        first, *lines = text.split("\n") if text.strip() else ("",)
        if not first:
            return kept
        try:
            found = json.loads(first)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise KeptError(f"found no exploration of format {FORMAT}; give the file of one, or a new name")
        wanted = json.loads(json.dumps(dict(about)))
        for name in sorted({*wanted, *found} - {"format"}):
            if wanted.get(name) != found.get(name):
                said = f"it explores {name} {found.get(name)!r}, and {wanted.get(name)!r} was asked for"
                raise KeptError(f"{said}; give the file of this exploration, or a new name")
        for line in lines[:-1]:  # what follows the last line break is empty, or was cut off
            try:
                batch = Batch.of_obj(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise KeptError(f"a line of it is no batch: {line[:80]!r}; give a new name") from error
            kept.batches[batch.number] = batch
        return kept

    def text(self) -> str:
        """Return the whole text, with which a file begins again."""
        head = json.dumps({"format": FORMAT, **self.about}) + "\n"
        return head + "".join(map(self.line, self.batches.values()))

    @staticmethod
    def line(batch: Batch) -> str:
        return json.dumps(batch.to_obj(), separators=(",", ":")) + "\n"

    def add(self, batch: Batch) -> str:
        """Keep a batch, and return the line to append."""
        self.batches[batch.number] = batch
        return self.line(batch)

    def broken(self) -> dict[int, Verdict]:
        """Return the schedules that broke a law by their place, in order."""
        found = {place: one for batch in self.batches.values() for place, one in batch.broken.items()}
        return dict(sorted(found.items()))

    def said(self) -> str:
        """Return the figures in a sentence."""
        each = self.batches.values()
        run, merged, same = (sum(getattr(one, name) for one in each) for name in ("schedules", "merged", "same"))
        cpu_s, states = sum(one.cpu_s for one in each), sum(one.states for one in each)
        settled = f" and settled {same:,} of one more fault" if same else ""
        return (
            f"{run:,} schedules{settled}, {merged:,} of them came to one of {states:,} known states, "
            f"{len(self.broken())} broke a law; {cpu_s:.0f} s of CPU, {cpu_s / max(run, 1) * 1000:.0f} ms each"
        )

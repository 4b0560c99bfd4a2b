"""The order of a channel: from its head down the chain of replacements (``sortChannel``)."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.patterns.operators.catalogs.model import Entry


class ChannelError(ValueError):
    """A channel has no order."""


def in_channel_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of one channel, the newest first; skipped ones are left out. Raises :class:`ChannelError`."""
    if not entries:
        return []
    where = f'channel "{entries[0].channel}" of package "{entries[0].package}"'
    by_name = {one.name: one for one in entries}
    skipped = {name for one in entries for name in one.skips if name in by_name}
    followed = skipped | {one.replaces for one in entries if one.replaces in by_name}
    heads = [one for one in entries if one.name not in followed]
    if not heads:
        raise ChannelError(f"no channel heads (entries not replaced by another entry) found in {where}")
    chains = [_chain(head, by_name, skipped, where) for head in heads]
    if len(chains) > 1:
        shown = ", ".join(_shown(chain) for chain in chains)
        raise ChannelError(
            "a unique replacement chain within a channel is required to determine the relative order between channel "
            f"entries, but {len(chains)} replacement chains were found in {where}: {shown}"
        )
    return chains[0]


def _shown(chain: Sequence[Entry]) -> str:
    if not chain:
        return "[]"
    return chain[0].name if len(chain) == 1 else f"{chain[0].name}...{chain[-1].name}"


def _chain(head: Entry, by_name: dict[str, Entry], skipped: set[str], where: str) -> list[Entry]:
    chain: list[Entry] = []
    seen: set[str] = set()
    current: Entry | None = head
    while current is not None:
        if current.name in seen:
            raise ChannelError(f'a cycle exists in the chain of replacement beginning with "{head.name}" in {where}')
        seen.add(current.name)
        if current.name not in skipped:
            chain.append(current)
        current = by_name.get(current.replaces)
    return chain

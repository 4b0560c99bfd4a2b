"""Texts of times and of messages with several lines."""

from __future__ import annotations

from datetime import datetime


def age(since: datetime | None, now: datetime) -> str:
    """Return a duration in Kubernetes' short form: 12s, 3m4s, 5h, 2d3h."""
    if since is None:
        return "<unknown>"
    seconds = max(int((now - since).total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d{hours % 24}h" if days < 8 and hours % 24 else f"{days}d"


def one_line(text: str) -> str:
    """Join the lines of a text by semicolons, so that it fits into one line."""
    return "; ".join(part.strip() for part in text.split("\n") if part.strip())

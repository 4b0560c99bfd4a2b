"""Make docs/demo.svg: the demonstration as a terminal shows it at its end. Run: python tools/record_demo.py"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 104
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlsu]")


def record() -> str:
    """Everything that ``syncline demo --exit`` writes to a terminal."""
    screen, terminal = pty.openpty()
    environment = dict(os.environ, TERM="xterm-256color", COLUMNS=str(WIDTH), LINES="60")
    command = [sys.executable, "-c", "from syncline.cli.main import main; raise SystemExit(main())", "demo", "--exit"]
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=terminal, env=environment, cwd=ROOT)
    os.close(terminal)
    written = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    assert process.wait() == 0, "the demonstration failed; run it by hand"
    return written.decode("utf-8", "replace").replace("\r", "")


def last_frame(written: str) -> str:
    """The lines before the tree, its last state, and what follows."""
    frames = re.split(r"(?=\x1b\[1mshop\x1b\[0m)", written)
    head = frames[0]
    return CURSOR.sub("", head + frames[-1])


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print("[bold]$ python3 run.py demo --exit[/bold]")
    console.print(Text.from_ansi(last_frame(record())))
    drawn = console.export_svg(title="a Git repository becomes a running cluster")
    # No fonts from elsewhere: the reader's own monospace face will do.
    (ROOT / "docs" / "demo.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    main()

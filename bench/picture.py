"""Draw what `polyhop demo` prints, for the README.

    python -m bench.picture docs/images/demo.svg

The first question of both parts is drawn: without a model, and with the recorded replies of one.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the SVG file to write")
    options = parser.parse_args(arguments)
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "polyhop.scripts.main", "demo"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    blocks = re.split(r"\n{2,}(?=\S*(?:bridge|comparison|yes/no|composition), |\S*\d\. )", printed)
    starts = [n for n, block in enumerate(blocks) if re.match(r"\S*[23]\. ", block)]
    shown = [block for start in starts for block in blocks[start : start + 2]]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ polyhop demo\n", style="bold"))
    console.print(Text.from_ansi("\n\n".join([*shown, "..."])))
    drawing = console.export_svg(title="polyhop demo")
    # Rich names a font of another site.
    options.out.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()

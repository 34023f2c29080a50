"""The command's first step, and ``python -m cleveragents``."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Ctrl-C while it is being loaded ends it as quietly as later."""
    try:
        from cleveragents.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

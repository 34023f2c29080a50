"""The command's first step, and ``python -m cleveragents``."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Ctrl-C while it is being loaded ends it as quietly as later."""
    try:
        from cleveragents.cli.main import main as run
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it has been told so once
        from cleveragents.cli.exit_codes import ExitCode

        sys.exit(ExitCode.INTERRUPTED)
    run()


if __name__ == "__main__":
    main()

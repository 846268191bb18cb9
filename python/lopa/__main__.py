"""The command line: `lopa …` and `python -m lopa …` are the same program."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from . import _lopa

    # The program handles Ctrl-C itself: a clean stop first, an immediate end the second time.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_lopa.main(["lopa", *sys.argv[1:]]))


if __name__ == "__main__":
    main()

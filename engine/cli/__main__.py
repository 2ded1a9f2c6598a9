"""Entry point of `python -m engine.cli`, which is the same as `exegesis`."""

from __future__ import annotations

from engine.cli import main

if __name__ == "__main__":
    main()

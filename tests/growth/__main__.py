"""`python -m tests.growth [NAME ...]`: the rows of `tests.growth.measure`, of all pairs or of those with one of these
names."""

from __future__ import annotations

import sys

from tests.growth.counted import install


def main() -> None:
    install()  # before anything of the kernel is imported
    from tests.growth.measure import main as measure

    measure(sys.argv[1:])


if __name__ == "__main__":
    main()

"""The command line: thin verbs over the public names. `escala.cli:main` is the program."""

from escala.cli.app import main

__all__ = ["main"]

"""`python -m escala` is the program `escala`."""

from escala.cli import main

if __name__ == "__main__":
    main()

"""`python -m escala` is the program `escala`."""

from escala.cli import program

if __name__ == "__main__":
    program()

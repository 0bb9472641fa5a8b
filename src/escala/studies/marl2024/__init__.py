"""R4 (Gergely, ICAART 2024): see `recipe`."""

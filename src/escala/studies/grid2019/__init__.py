"""R1 (Casagrande et al., Computer on the Beach 2019): see `recipe`."""

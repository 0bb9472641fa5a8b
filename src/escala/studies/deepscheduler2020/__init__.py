"""R3 (Casagrande, dissertation 2020), DeepScheduler: see `recipe`."""

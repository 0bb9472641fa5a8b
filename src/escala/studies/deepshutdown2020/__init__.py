"""R3 (Casagrande, dissertation 2020), DeepShutdown: see `recipe`."""

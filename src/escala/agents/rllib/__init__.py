"""RLlib's algorithms on Escala's native batches, with masks. Needs the extra rllib; see docs/how-to/ray.md.

`module.MaskedModule` is an `RLModule` around the network of a preset, `runner.NativeEnvRunner` an `EnvRunner` that
steps a native batch. `training.configured` puts both into a configuration of RLlib's PPO.
"""

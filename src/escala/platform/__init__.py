"""Platforms: nodes, cores, further resources and power states; named presets and platform files."""

from escala.platform import power
from escala.platform.platform import Platform
from escala.platform.power import PowerProfile
from escala.platform.presets import PRESETS, preset
from escala.platform.read import read_platform

__all__ = ["PRESETS", "Platform", "PowerProfile", "power", "preset", "read_platform"]

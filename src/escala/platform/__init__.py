"""Platforms: nodes, cores, further resources and power states; named presets and platform files."""

from escala.platform import power
from escala.platform.platform import Platform
from escala.platform.power import PowerProfile
from escala.platform.presets import PRESETS, preset
from escala.platform.read import read_platform
from escala.platform.read_site import read_site
from escala.platform.site import Partition, Site

__all__ = ["PRESETS", "Partition", "Platform", "PowerProfile", "Site", "power", "preset", "read_platform", "read_site"]

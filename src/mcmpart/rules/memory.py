"""memory: weights, double buffers and live tensors fit the chip."""

from __future__ import annotations

from mcmpart.hardware.package import Package
from mcmpart.reference import Reference
from mcmpart.rules.violation import Violation
from mcmpart.units import format_bytes


def explain(package: Package, loads: Reference) -> list[Violation]:
    """Return the chips whose demand exceeds their memory, with the parts of it."""
    return [
        Violation(
            "memory",
            f"chip {load.chip} needs {format_bytes(load.memory_bytes)} "
            f"({format_bytes(load.weight_bytes)} weights, "
            f"{format_bytes(load.buffer_bytes)} transfer buffers, "
            f"{format_bytes(load.peak_live_bytes)} live tensors) and has "
            f"{format_bytes(chip.memory_bytes)}: it does not fit by "
            f"{format_bytes(load.memory_bytes - chip.memory_bytes)}",
            (load.chip,),
        )
        for load, chip in zip(loads.chips, package.chips, strict=True)
        if load.memory_bytes > chip.memory_bytes
    ]

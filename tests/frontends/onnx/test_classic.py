"""Classic networks that the onnx package carries, against published counts."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from .models import read

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize(
    ("name", "giga_flops"),
    [
        # Multiply-adds of the papers, twice: 19.6 G, 3.9 to 4.1 G, 2.9 G, 0.35 G.
        ("vgg19", 39.3),
        ("resnet50", 8.2),
        ("densenet121", 5.75),
        ("squeezenet", 0.71),
    ],
)
def test_flops_of_a_classic_network(name: str, giga_flops: float) -> None:
    """FLOPs agree with the published multiply-adds, and every op has a rule."""
    path = LIGHT / f"light_{name}.onnx"
    if not path.exists():
        pytest.skip("this onnx package carries no networks")
    result = read(path)
    assert result.graph.op_flops.sum() / 1e9 == pytest.approx(giga_flops, rel=0.01)
    assert result.report.ops_covered == 1.0
    assert not result.graph.assumptions

"""Peak memory without allocating, against the same program run for real."""

import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp.protocol import Goal
from skyline_lsp.worker.fake import NEEDS_DATA, fake_tensors
from tests.worker.measure_apart import peak_apart
from tests.worker.programs import measure_program

PROGRAMS = {
    "convolutions": """
        from torch import nn

        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 30 * 30, 10)
        ).to("cpu")
        optimizer = torch.optim.Adam(model.parameters())
        x, y = torch.randn(BATCH, 3, 32, 32), torch.zeros(BATCH, dtype=torch.long)

        def iteration():
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        """,
    "transformer": """
        from torch import nn

        model = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0).to(torch.float32)
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(BATCH, 10, 32)

        def iteration():
            optimizer.zero_grad(set_to_none=False)
            model(x).square().mean().backward()
            optimizer.step()
        """,
}


PROGRAMS["lstm"] = """
    from torch import nn

    model = nn.LSTM(24, 40, num_layers=2, dropout=0.1, bidirectional=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(20, BATCH, 24)

    def iteration():
        optimizer.zero_grad()
        model(x)[0].square().mean().backward()
        optimizer.step()
    """


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("batch_size", [1, 24])
def test_peak_is_the_real_one(tmp_path: Path, name: str, batch_size: int) -> None:
    """The estimate is within 1 % of the peak of a real run."""
    program = f"import torch\nBATCH = {batch_size}\n" + textwrap.dedent(PROGRAMS[name])
    estimate = peak_apart(tmp_path, program, Goal.ESTIMATE)
    assert estimate == pytest.approx(peak_apart(tmp_path, program, Goal.SAMPLE), rel=0.01)


def test_a_line_that_needs_values_says_so(tmp_path: Path) -> None:
    """Asking a fake tensor for a value raises one of the known kinds."""
    program = "import torch\nx = torch.randn(4)\n\ndef iteration():\n    x.sum().item()\n"
    with fake_tensors(), pytest.raises(NEEDS_DATA):
        measure_program(tmp_path, program, goal=Goal.ESTIMATE)


def test_conversions_replace_parameters() -> None:
    """Under fake tensors a module can change its data type as usual."""
    with fake_tensors():
        module = torch.nn.LSTM(4, 4).half()
        assert {parameter.dtype for parameter in module.parameters()} == {torch.float16}

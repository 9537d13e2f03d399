"""What PyTorch users write: each construct's cost lands on the line that a user would expect."""

import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp import protocol
from tests.worker.programs import profile_program
from tests.worker.test_line_times import HEAD, check_times, near


def profile_of(folder: Path, program: str) -> protocol.Profile:
    return profile_program(folder, HEAD + textwrap.dedent(program))


def line_of(profile: protocol.Profile, folder: Path, text: str) -> protocol.LineCost:
    """The cost of the one line that contains `text`."""
    source = (folder / "step.py").read_text(encoding="utf-8").splitlines()
    (found,) = [line for line in profile.lines if text in source[line.line - 1]]
    return found


MODULES = """
from torch import nn
from tests.worker.naps import nap

class Rest(nn.Module):
    def __init__(self, forward_ms, backward_ms):
        super().__init__()
        self.times = forward_ms, backward_ms

    def forward(self, x):
        return nap(x, *self.times)
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module outside of the project with layers that take a known time."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "restful.py").write_text(MODULES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(__import__("sys").modules, "restful", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.usefixtures("library")
def test_children_of_a_sequential(project: Path) -> None:
    """Each child of a Sequential has its cost on the line that constructs it, and in the calling line inclusively."""
    program = """
        from restful import Rest

        net = torch.nn.Sequential(
            torch.nn.Linear(16, 16),
            Rest(6, 3),  # fwd 6 bwd 3
            torch.nn.Sequential(
                Rest(2, 8),  # fwd 2 bwd 8
            ),
        )

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                return self.net(x)

        model = Model()

        def iteration():
            y = model(x)
            y.sum().backward()
        """
    check_times(project, program)
    call = line_of(profile_of(project, program), project, "return self.net(x)")
    assert call.forward_ms == near(8)
    assert call.backward_ms == near(11)
    assert call.self_forward_ms == near(0)


@pytest.mark.usefixtures("library")
def test_modules_inside_a_library_model(project: Path, tmp_path: Path) -> None:
    """A library model's cost is the calling line's own, and its inner modules are told by name."""
    (tmp_path / "site" / "library_model.py").write_text(
        textwrap.dedent(
            """
            from torch import nn
            from restful import Rest

            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first = nn.Linear(16, 16)
                    self.second = Rest(3, 9)

                def forward(self, x):
                    return self.second(self.first(x))
            """
        ),
        encoding="utf-8",
    )
    profile = profile_of(
        project,
        """
        from library_model import Model
        model = Model()

        def iteration():
            y = model(x)
            y.sum().backward()
        """,
    )
    call = line_of(profile, project, "y = model(x)")
    assert call.self_forward_ms == near(3)
    assert call.self_backward_ms == near(9)
    modules = {node.module: node for node in profile.tree if node.module}
    assert modules["second (Rest)"].self_backward_ms == near(9)
    assert modules["second (Rest)"].line == call.line


def test_hooks(tmp_path: Path) -> None:
    """Forward hooks and tensor hooks of the project are lines like others."""
    check_times(
        tmp_path,
        """
        import time
        linear = torch.nn.Linear(16, 16)

        def slow_hook(module, inputs, output):
            time.sleep(.004)  # fwd 4

        def slow_gradient(gradient):
            time.sleep(.006)  # bwd 6

        linear.register_forward_hook(slow_hook)

        def iteration():
            y = linear(x)
            y.register_hook(slow_gradient)
            y.sum().backward()
        """,
    )


def test_shared_weights_and_in_place(tmp_path: Path) -> None:
    """A weight used on two lines, and operations in place, keep each line's own times."""
    check_times(
        tmp_path,
        """
        def iteration():
            y = nap(x @ w, 2, 5)  # fwd 2 bwd 5
            y = nap(y @ w, 4, 3)  # fwd 4 bwd 3
            y += 1
            y = torch.relu_(y)
            y = nap(y @ w.t(), 1, 7)  # fwd 1 bwd 7
            y.sum().backward()
        """,
    )


def test_gradient_accumulation_and_scaler(tmp_path: Path) -> None:
    """Micro-batches under autocast and a gradient scaler add up on their line."""
    check_times(
        tmp_path,
        """
        scaler = torch.amp.GradScaler("cpu")
        optimizer = torch.optim.SGD([w], lr=1e-3)

        def iteration():
            for _ in range(3):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    y = nap(x @ w, 2, 4)  # fwd 6 bwd 12
                scaler.scale(y.float().sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        """,
    )


def test_closure_optimizer(tmp_path: Path) -> None:
    """A closure that the optimizer calls is traced like the rest."""
    check_times(
        tmp_path,
        """
        optimizer = torch.optim.LBFGS([w], lr=1e-4, max_iter=2, tolerance_grad=0, tolerance_change=0)

        def closure():
            optimizer.zero_grad()
            loss = nap(x @ w, 3, 4).pow(2).mean()  # fwd 6 bwd 8
            loss.backward()
            return loss

        def iteration():
            optimizer.step(closure)
        """,
    )


def test_threads(tmp_path: Path) -> None:
    """Work in a thread is charged to the line that waits for it; its backward to the line that uses the result."""
    check_times(
        tmp_path,
        """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(1)

        def iteration():
            future = pool.submit(nap, x @ w, 8, 3)
            y = future.result()  # fwd 8
            loss = y.sum()  # bwd 3
            loss.backward()
        """,
    )


def test_lambdas_comprehensions_decorators_and_generated_code(tmp_path: Path) -> None:
    """Functions without a name of their own keep their lines; code from a string belongs to the line that runs it."""
    check_times(
        tmp_path,
        """
        import functools

        def twice(function):
            @functools.wraps(function)
            def wrapper(x):
                return function(function(x))
            return wrapper

        @twice
        def decorated(x):
            return nap(x, 1, 2)  # fwd 2 bwd 4

        anonymous = lambda x: nap(x, 3, 2)  # fwd 3 bwd 2
        generated = {"nap": nap}
        exec("def made(x):\\n    return nap(x, 4, 5)\\n", generated)

        def iteration():
            y = anonymous(decorated(x @ w))
            y = sum([
                nap(y, t, 1)  # fwd 5 bwd 2
                for t in (2, 3)
            ])
            y = generated["made"](y)  # fwd 4 bwd 5
            y.sum().backward()
        """,
    )


def test_recurrent_attention_and_sparse_layers_are_covered(tmp_path: Path) -> None:
    """Layers whose kernels are fused, and sparse gradients, leave next to nothing untracked."""
    profile = profile_of(
        tmp_path,
        """
        lstm, gru = torch.nn.LSTM(16, 16, batch_first=True), torch.nn.GRU(16, 16, batch_first=True)
        attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        embedding = torch.nn.Embedding(100, 16, sparse=True)
        tokens = torch.randint(100, (32, 64))

        def iteration():
            y = embedding(tokens)
            y, _ = lstm(y)
            y, _ = gru(y)
            y, _ = attention(y, y, y)
            y = torch.nn.functional.scaled_dot_product_attention(y, y, y)
            y.sum().backward()
        """,
    )
    assert profile.untracked_ms < 0.1 * profile.iteration.run_time_ms
    for text in ("embedding(", "lstm(", "gru(", " attention(", "scaled_dot"):
        line = line_of(profile, tmp_path, text if text != " attention(" else "_ = attention(")
        assert line.self_backward_ms > 0, text
    assert line_of(profile, tmp_path, "= lstm(").self_flop > 0
    assert line_of(profile, tmp_path, "scaled_dot").self_flop > 0


def test_compiled_region(tmp_path: Path) -> None:
    """A compiled function runs compiled; its time is on the line that defines it, which says so."""
    profile = profile_of(
        tmp_path,
        """
        @torch.compile(backend="aot_eager")
        def fused(x):
            y = (x @ w).relu()
            torch._dynamo.graph_break()
            return y.tanh()

        def iteration():
            y = fused(x)
            y.sum().backward()
        """,
    )
    labels = [node for node in profile.tree if node.label]
    assert labels
    assert all(node.label and "compiled" in node.label for node in labels)
    breaks = [remark for remark in profile.remarks if remark.kind is protocol.RemarkKind.GRAPH_BREAK]
    source = (tmp_path / "step.py").read_text(encoding="utf-8").splitlines()
    assert ["graph_break" in source[remark.line - 1] for remark in breaks] == [True]


def test_flop_are_those_of_the_shapes(tmp_path: Path) -> None:
    """FLOP of a product are twice its multiply-adds, forward, and once more for each gradient that is asked for."""
    profile = profile_of(
        tmp_path,
        """
        v = torch.nn.Parameter(torch.randn(16, 16))

        def iteration():
            y = x @ w
            y = y @ v
            y.sum().backward()
        """,
    )
    product = 2 * 4 * 16 * 16
    assert line_of(profile, tmp_path, "y = x @ w").self_flop == 2 * product
    assert line_of(profile, tmp_path, "y = y @ v").self_flop == 3 * product
    # Reads x and w, writes y.
    assert line_of(profile, tmp_path, "y = x @ w").flop_type == "float32"

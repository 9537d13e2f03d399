"""Programs to advise, and what was measured of them."""

import ast
from typing import Any

from skyline_lsp.features import Action, Index, State, code_actions
from skyline_lsp.features.advice import Advice, AdviceCode, advise
from skyline_lsp.protocol import Device, OptimizerUse, Product, Profile
from skyline_lsp.source import apply
from tests.features.building import profile_of, snapshot_of

CPU = Device(kind="cpu", name="CPU", memory_bytes=None)
H200 = Device(kind="cuda", name="H200", memory_bytes=None)


def advice_of(profile: Profile, text: str = "", code: AdviceCode | None = None) -> list[Advice]:
    """Advice for a program whose only file is train.py."""
    found = advise(profile, {"train.py": text})
    return [one for one in found if code is None or one.code is code]


def sole(profile: Profile, text: str = "") -> Advice:
    (one,) = advice_of(profile, text)
    return one


def actions_of(profile: Profile, text: str, line: int, **given: Any) -> list[Action]:
    """Quick fixes at a line of train.py; the text that was profiled is `profiled`, where it is another."""
    profiled = given.pop("profiled", text)
    index = Index(profile, {"train.py": profiled})
    shot = snapshot_of(text, profile=profile, index=index, state=State.READY, **given)
    return [action for action in code_actions(shot, line, line) if action.kind.value == "quickfix"]


def followed(profile: Profile, text: str, line: int) -> str:
    """The text after the first quick fix at a line."""
    edit = actions_of(profile, text, line)[0].edit
    assert edit is not None
    after = apply(text.encode(), edit).decode()
    ast.parse(after)
    return after


def convolving(*lines: int, bias: bool = True) -> Profile:
    """A profile whose lines run a convolution of 3 to 8 channels."""
    tree = "\n".join(f"train.py:{line} f 1 1" for line in lines)
    shapes = ((16, 3, 9, 9), (8, 3, 3, 3), *([(8,)] if bias else []))
    products = tuple(
        Product(
            node=node,
            operation="convolution",
            shapes=shapes,
            result=(16, 8, 7, 7),
            dtype="float32",
            channels_last=False,
            count=1,
            flop=1,
        )
        for node in range(len(lines))
    )
    return profile_of(tree, products=products)


ADAM = "import torch\noptimizer = torch.optim.Adam(parameters, lr=1e-3)\noptimizer.step()\n"


def stepping(**changes: Any) -> Profile:
    use: dict[str, Any] = {
        "path": "train.py",
        "line": 3,
        "name": "Adam",
        "steps": 1,
        "parameters": 100,
        "parameter_bytes": 10 * 2**20,
        "state_bytes": 20 * 2**20,
        "fused": False,
        "foreach": False,
        "can_fuse": True,
    }
    return profile_of("train.py:3 f 20 0 moved=280MiB operations=1200", optimizers=(OptimizerUse(**(use | changes)),))

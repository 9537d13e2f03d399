"""The example models are the published ones, and one iteration of each trains it."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).parents[2] / "examples"
Load = Callable[..., ModuleType]
NAMES = ["dcgan", "gpt", "lstm_lm", "resnet50"]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import a module of an example as its own directory would see it, and forget it afterwards."""
    before = set(sys.modules)

    def load_module(example: str, module: str = "providers") -> ModuleType:
        monkeypatch.syspath_prepend(str(EXAMPLES / example))
        return importlib.import_module(module)

    yield load_module
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None) or ""
        if origin.startswith(str(EXAMPLES)):
            del sys.modules[name]


def check_parameters(model: "torch.nn.Module", expected: int) -> None:
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_examples_are_the_folders_named_here() -> None:
    """Every example folder is tested."""
    assert sorted(path.parent.name for path in EXAMPLES.glob("*/providers.py")) == NAMES


def test_resnet50_has_the_published_parameters(load: Load) -> None:
    """ResNet-50 with 1000 classes has 25,557,032 parameters."""
    check_parameters(load("resnet50").skyline_model_provider(), 25_557_032)


def test_gpt_reaches_the_published_parameters(load: Load) -> None:
    """With its size "gpt2" the transformer has the 124,439,808 parameters of the smallest GPT-2."""
    transformer = load("gpt", "transformer")
    with torch.device("meta"):
        model = transformer.GPT(transformer.SIZES["gpt2"])
    check_parameters(model, 124_439_808)


def test_gpt_does_not_look_ahead(load: Load) -> None:
    """Scores of a position do not depend on later tokens."""
    transformer = load("gpt", "transformer")
    model = transformer.GPT(transformer.Size(layers=2, heads=2, width=8, context=6, vocabulary=10)).eval()
    tokens = torch.randint(10, (1, 6))
    changed = tokens.clone()
    changed[0, 4:] = (changed[0, 4:] + 1) % 10
    scores, others = model(tokens), model(changed)
    assert torch.allclose(scores[0, :4], others[0, :4])
    assert not torch.allclose(scores[0, 4:], others[0, 4:])


def test_dcgan_makes_images_of_the_published_shape(load: Load) -> None:
    """The generator turns 100 numbers into a 64 by 64 image with values from -1 to 1."""
    networks = load("dcgan", "networks")
    image = networks.DCGAN(noise=100, width=8)(torch.randn(2, 100))
    assert image.shape == (2, 3, 64, 64)
    assert image.abs().max() <= 1


def test_dcgan_runs_three_backward_passes(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration of the GAN goes backward three times."""
    passes = []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss, *a, **k: (passes.append(1), backward(loss, *a, **k))[1])
    providers = load("dcgan")
    iteration = providers.skyline_iteration_provider(providers.skyline_model_provider())
    iteration(*providers.skyline_input_provider(batch_size=2))
    assert len(passes) == 3


def test_language_model_ties_its_weights(load: Load) -> None:
    """The embedding and the scoring layer share one parameter, and the LSTM's state is carried over."""
    model = load("lstm_lm", "language_model").LanguageModel(vocabulary=11, width=4)
    assert model.score.weight is model.embedding.weight
    words = torch.randint(11, (3, 2))
    _, state = model.eval()(words, None)
    assert not torch.equal(model(words, None)[0], model(words, state)[0])


@pytest.mark.parametrize("name", NAMES)
def test_an_iteration_changes_every_parameter(load: Load, name: str) -> None:
    """One iteration at a batch size of 2 leaves every parameter finite and changed."""
    providers = load(name)
    model = providers.skyline_model_provider()
    before = {key: value.detach().clone() for key, value in model.named_parameters()}
    iteration = providers.skyline_iteration_provider(model)
    iteration(*providers.skyline_input_provider(batch_size=2))
    for key, value in model.named_parameters():
        assert value.isfinite().all(), key
        assert not torch.equal(before[key], value), key

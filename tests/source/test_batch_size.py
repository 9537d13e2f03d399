"""Where the batch size is found to be written, shape by shape; the literal to find stands between double brackets."""

import pytest

from skyline_lsp.source import Site, SiteKind, apply, find_sites, set_batch_size, why_no_site
from tests.source.projects import ROOT, MemoryFiles, mark_of, read_case

_STEP = """
net = torch.nn.Linear(2, 1)
for x in loader:
    net(x).sum().backward()
"""
_HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def check_sites(
    fixture: str,
    kind: SiteKind | None = None,
    name: str | None = None,
    reason: str = "",
    editable: bool = True,
    step: bool = True,
) -> tuple[Site, ...]:
    """The marked literal is the best site, of this kind and name, with this in its reason. Returns all sites."""
    if step and "backward" not in fixture:
        fixture = _in_program(fixture)
    case = read_case(fixture)
    sites = find_sites(case.files, case.entry, case.arguments)
    assert sites, why_no_site(case.files, case.entry, case.arguments)
    best = sites[0]
    assert mark_of(best) == case.mark, sites
    assert best.editable is editable
    if kind is not None:
        assert best.kind is kind
    if name is not None:
        assert best.name == name
    assert reason in best.reason
    assert [site.rank for site in sites] == list(range(len(sites)))
    for site in sites:
        data = case.files.read(site.path)
        assert data is not None
        assert site.kind is SiteKind.RUN_CONFIGURATION or data[site.start : site.end] == site.text.encode()
    return sites


def _in_program(fixture: str) -> str:
    """The fixture's first file between the imports and a training loop over `loader`."""
    if "@@" not in fixture:
        return _HEAD + fixture + _STEP
    head, rest = fixture.split("@@", 1)
    name, body = rest.split("\n", 1)
    first, mark, others = body.partition("@@ ")
    return f"{head}@@{name}\n{_HEAD}{first}{_STEP}{mark}{others}"


@pytest.mark.parametrize(
    ("fixture", "kind", "name"),
    [
        ("loader = DataLoader(d, batch_size=⟦64⟧)", SiteKind.DATALOADER, "batch_size"),
        ("loader = DataLoader(d, ⟦64⟧, True)", SiteKind.DATALOADER, "batch_size"),
        ("loader = torch.utils.data.DataLoader(d, ⟦64⟧)", SiteKind.DATALOADER, "batch_size"),
        ("import torch.utils.data as td\nloader = td.DataLoader(d, ⟦64⟧)", SiteKind.DATALOADER, "batch_size"),
        ("BATCH = ⟦64⟧\nloader = DataLoader(d, BATCH)", SiteKind.CONSTANT, "BATCH"),
        ("lr, BATCH = 64, ⟦64⟧\nloader = DataLoader(d, BATCH)", SiteKind.CONSTANT, "BATCH"),
        ("B: int = ⟦64⟧\nloader = DataLoader(d, B)", SiteKind.CONSTANT, "B"),
        ("class C: b = ⟦64⟧\nloader = DataLoader(d, C.b)", SiteKind.CLASS_ATTRIBUTE, "b"),
        ("c = {'t': {'b': ⟦64⟧}}\nloader = DataLoader(d, c['t']['b'])", SiteKind.DICT_ENTRY, "t.b"),
        ("c = dict(b=⟦64⟧)\nloader = DataLoader(d, c['b'])", SiteKind.DICT_ENTRY, "b"),
        ("c = {}\nc['b'] = ⟦64⟧\nloader = DataLoader(d, c['b'])", SiteKind.DICT_ENTRY, "b"),
        ("def f(b=⟦64⟧): return DataLoader(d, b)\nloader = f()", SiteKind.FUNCTION_DEFAULT, "b"),
        ("def f(*, b=⟦64⟧): return DataLoader(d, b)\nloader = f()", SiteKind.FUNCTION_DEFAULT, "b"),
        ("def f(b=1): return DataLoader(d, b)\nloader = f(b=⟦64⟧)", SiteKind.CALL_KEYWORD, "b"),
        ("def f(b=1): return DataLoader(d, b)\nloader = f(⟦64⟧)", SiteKind.CALL_ARGUMENT, "f"),
        ("import os\nb = int(os.environ.get('B', ⟦64⟧))\nloader = DataLoader(d, b)", SiteKind.ENVIRONMENT_DEFAULT, "B"),
        ("import os\nb = int(os.getenv('B', '⟦64⟧'))\nloader = DataLoader(d, b)", SiteKind.ENVIRONMENT_DEFAULT, "B"),
        ("b = 4 * ⟦8⟧\nloader = DataLoader(d, b)", SiteKind.EXPRESSION, "b"),
        ("def b(): return ⟦64⟧\nloader = DataLoader(d, b())", SiteKind.CONSTANT, "b"),
        ("b = lambda: ⟦64⟧\nloader = DataLoader(d, b())", SiteKind.CONSTANT, "b"),
    ],
)
def test_each_way_of_writing_it_has_its_kind(fixture: str, kind: SiteKind, name: str) -> None:
    """Constants, attributes, entries, defaults, arguments, variables of the environment."""
    check_sites(fixture, kind, name)


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("'--batch-size', default=⟦64⟧, type=int", "--batch-size"),
        ("'-b', '--batch-size', type=int, default=⟦64⟧", "--batch-size"),
        ("'--bs', dest='batch_size', default=⟦64⟧", "--bs"),
        ("'--batch_size', default='⟦64⟧', type=int", "--batch_size"),
        ("'--batch_size', default=⟦64⟧, type=lambda s: int(s)", "--batch_size"),
    ],
)
def test_argparse_options(option: str, name: str) -> None:
    """Flags with dashes, short ones, destinations, types."""
    check_sites(
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument({option})\n"
        "a = p.parse_args()\nloader = DataLoader(d, a.batch_size)",
        SiteKind.ARGPARSE,
        name,
        reason=f"default of {name}, which loader's DataLoader reads",
    )


def test_argparse_groups_parents_and_defaults_set_later() -> None:
    """Options of a group, of a parent parser, and `set_defaults`, which wins over the option's own."""
    check_sites(
        "import argparse\nbase = argparse.ArgumentParser(add_help=False)\n"
        "base.add_argument_group('g').add_argument('--batch', type=int, default=8)\n"
        "p = argparse.ArgumentParser(parents=[base])\np.set_defaults(batch=⟦64⟧)\n"
        "a, rest = p.parse_known_args()\nloader = DataLoader(d, batch_size=a.batch)",
    )


def test_an_attribute_set_on_the_namespace_wins() -> None:
    """What is assigned after parsing is what is read."""
    check_sites(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--b', type=int, default=8)\n"
        "a = p.parse_args()\na.b = ⟦64⟧\nloader = DataLoader(d, batch_size=a.b)",
        SiteKind.ATTRIBUTE,
        "a.b",
    )


def test_division_and_clamping_are_followed_and_told() -> None:
    """`// ngpus` and `min(...)` leave the literal the site, and the reason names them."""
    sites = check_sites(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--b', type=int, default=⟦64⟧)\n"
        "a = p.parse_args()\nn = torch.cuda.device_count()\na.b = int(a.b / n)\n"
        "loader = DataLoader(d, batch_size=min(a.b, len(d)))",
        SiteKind.ARGPARSE,
        reason="divided by n; limited to at most len(d)",
    )
    assert (sites[0].multiplier, sites[0].divisor) == (1, 1)


def test_known_factors_are_counted() -> None:
    """A literal that is multiplied and divided gives a batch size of its own."""
    site = check_sites("ranks = 4\nb = ⟦256⟧ // ranks\nloader = DataLoader(d, b)", SiteKind.EXPRESSION)[0]
    assert (site.value, site.divisor, site.batch_size) == (256, 4, 64)


def test_a_known_limit_is_told() -> None:
    """A limit above the size leaves the size the site and is given as its maximum."""
    site = check_sites("MOST = 128\nb = min(⟦64⟧, MOST)\nloader = DataLoader(d, b)", reason="limited to at most MOST")[
        0
    ]
    assert site.maximum == 128


def test_a_limit_by_comparison_is_told() -> None:
    """`if b > MOST: b = MOST` limits too, though it changes nothing now."""
    site = check_sites(
        "MOST = 128\nb = ⟦64⟧\nif b > MOST:\n    b = MOST\nloader = DataLoader(d, b)", reason="limited to MOST (128)"
    )[0]
    assert site.maximum == 128


def test_automatic_sizes_are_sites_where_a_number_can_be_written() -> None:
    """-1 can be replaced; None says in its reason what to do."""
    check_sites(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--batch-size', type=int, default=⟦-1⟧)\n"
        "b = p.parse_args().batch_size\nif b == -1:\n    b = probe()\nloader = DataLoader(d, b)",
        reason="-1 lets the program choose",
    )
    check_sites(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--batch-size', type=int, default=⟦None⟧)\n"
        "loader = DataLoader(d, batch_size=p.parse_args().batch_size)",
        reason="write a number there",
        editable=False,
    )


@pytest.mark.parametrize("expression", ["2 ** 6", "1 << 6", "32 + 32", "65 - 1"])
def test_calculations_without_a_single_answer_are_not_editable(expression: str) -> None:
    """A power, a shift and a sum say that they are to be changed by hand."""
    case = read_case(_in_program(f"b = {expression}\nloader = DataLoader(d, b)"))
    sites = find_sites(case.files, case.entry)
    assert sites
    assert not any(site.editable for site in sites if site.resolved)
    assert "by hand" in why_no_site(case.files, case.entry)


def test_the_command_line_overrides_the_default() -> None:
    """The run configuration is the site, not editable here; the overridden default comes next."""
    case = read_case(
        "arguments: --batch-size 128\n@@ train.py\n"
        + _HEAD
        + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--batch-size', type=int, default=⟦64⟧)\n"
        "loader = DataLoader(d, p.parse_args().batch_size)\n" + _STEP
    )
    first, second = find_sites(case.files, case.entry, case.arguments)[:2]
    assert (first.kind, first.editable, first.value, first.name) == (
        SiteKind.RUN_CONFIGURATION,
        False,
        128,
        "--batch-size",
    )
    assert "run configuration" in first.reason
    assert mark_of(second) == case.mark
    assert "overridden by --batch-size 128" in second.reason
    assert "run configuration" in why_no_site(case.files, case.entry, case.arguments)


@pytest.mark.parametrize("argument", ["--batch-size=128", "-b 128", "-b128", "--batch 128"])
def test_all_spellings_of_an_argument_are_read(argument: str) -> None:
    """Equals signs, short flags, glued values and unambiguous beginnings."""
    case = read_case(
        f"arguments: {argument}\n@@ train.py\n" + _HEAD + "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('-b', '--batch-size', type=int, default=64)\n"
        "loader = DataLoader(d, p.parse_args().batch_size)\n" + _STEP
    )
    best = find_sites(case.files, case.entry, case.arguments)[0]
    assert (best.kind, best.value) == (SiteKind.RUN_CONFIGURATION, 128)


def test_the_environment_of_the_run_configuration_overrides_too() -> None:
    """A variable that the run sets is to be changed there."""
    case = read_case(_in_program("import os\nloader = DataLoader(d, int(os.environ.get('BS', 64)))"))
    best = find_sites(case.files, case.entry, environment={"BS": "128"})[0]
    assert (best.kind, best.name, best.value) == (SiteKind.RUN_CONFIGURATION, "BS", 128)


def test_arguments_decide_which_branch_and_which_file_counts() -> None:
    """A flag and a path on the command line lead to other literals."""
    program = (
        _HEAD + "import argparse, yaml\np = argparse.ArgumentParser()\np.add_argument('--config', default='a.yaml')\n"
        "p.add_argument('--small', action='store_true')\na = p.parse_args()\ncfg = yaml.safe_load(open(a.config))\n"
        "loader = DataLoader(d, 2 if a.small else cfg['batch_size'])\n" + _STEP
    )
    files = MemoryFiles(
        files={
            f"{ROOT}/train.py": program.encode(),
            f"{ROOT}/a.yaml": b"batch_size: 10\n",
            f"{ROOT}/b.yaml": b"batch_size: 20\n",
        }
    )

    def best(*arguments: str) -> tuple[str, int]:
        site = find_sites(files, f"{ROOT}/train.py", arguments)[0]
        return site.path.removeprefix(f"{ROOT}/"), site.value

    assert best() == ("a.yaml", 10)
    assert best("--config", "b.yaml") == ("b.yaml", 20)
    assert best("--small") == ("train.py", 2)


def test_evaluation_is_told_apart_by_what_is_trained_on() -> None:
    """Without a single telling name: the loader whose batches are backpropagated counts."""
    sites = check_sites(
        "a = DataLoader(d, 99)\nloader = DataLoader(d, ⟦64⟧)\nfor x in a:\n    x + 1",
    )
    assert [(site.value, site.evaluation) for site in sites] == [(64, False), (99, True)]


def test_evaluation_is_told_apart_by_names_where_nothing_trains() -> None:
    """A function that is never called still tells by its names."""
    sites = check_sites(
        "def make():\n    test_loader = DataLoader(d, batch_size=100)\n"
        "    train_loader = DataLoader(d, batch_size=⟦64⟧)\n    return train_loader, test_loader",
        step=False,
    )
    assert sites[1].evaluation
    assert "for evaluation only" in sites[1].reason


def test_a_literal_that_both_read_is_not_for_evaluation_only() -> None:
    """A shared constant belongs to training."""
    sites = check_sites("b = ⟦64⟧\ntest = DataLoader(d, b)\nloader = DataLoader(d, b)\nfor x in test:\n    x")
    assert not sites[0].evaluation


def test_names_alone_come_last() -> None:
    """A number whose name speaks of batches, but which nothing reads, is offered below what is resolved."""
    sites = check_sites("batch_size = 32\ntest_batch_size = 9\nloader = DataLoader(d, batch_size=⟦64⟧)")
    assert [(site.value, site.resolved, site.evaluation) for site in sites] == [
        (64, True, False),
        (32, False, False),
        (9, False, True),
    ]
    assert "was not seen to feed the model" in sites[1].reason


@pytest.mark.parametrize(
    "name",
    ["num_batches", "batch_idx", "log_every_n_batches", "batch_norm_momentum", "batch_first", "n_batch", "epochs"],
)
def test_other_names_with_batch_in_them_are_no_sites(name: str) -> None:
    """Counts, indices and layers are not sizes."""
    case = read_case(_HEAD + f"{name} = 5\nloader = DataLoader(d, batch_size=64)\n" + _STEP)
    assert [site.value for site in find_sites(case.files, case.entry)] == [64]


def test_modules_packages_and_configuration_files_are_followed() -> None:
    """Absolute, relative and star imports, submodules, and a file in a folder above the script."""
    check_sites(
        "@@ tools/train.py\n" + _HEAD + "from pkg.build import *\nloader = make()\n" + _STEP + "@@ pkg/__init__.py\n"
        "@@ pkg/build.py\nfrom torch.utils.data import DataLoader\nfrom . import settings as s\n"
        "from .deep.sizes import B\n"
        "def make():\n    return DataLoader([], s.scale(B))\n"
        "@@ pkg/settings.py\ndef scale(n):\n    return n\n"
        "@@ pkg/deep/__init__.py\n@@ pkg/deep/sizes.py\nA = 1\nB = ⟦64⟧\n",
        SiteKind.CONSTANT,
        "B",
    )


def test_a_project_file_shadows_nothing_of_torch() -> None:
    """A folder called torch inside the project is not what the program imports."""
    check_sites("@@ train.py\nloader = DataLoader(d, ⟦64⟧)\n@@ vendor/torch/utils/data.py\nclass DataLoader: pass\n")


def test_cycles_of_imports_recursion_and_endless_loops_end() -> None:
    """Nothing that a program does keeps the finder from answering."""
    check_sites(
        "@@ train.py\nimport a\ndef deep(n):\n    return deep(n + 1)\ndeep(0)\n"
        "while True:\n    if a.b.SIZE:\n        break\nx = lambda f: f(f)\nx(x)\n"
        "loader = DataLoader(d, a.SIZE)\n@@ a.py\nimport b\nSIZE = b.SIZE\n@@ b.py\nimport a\nSIZE = ⟦64⟧\n"
    )


def test_a_broken_module_costs_only_itself() -> None:
    """What can't be parsed is unknown; the rest is still followed."""
    check_sites(
        "@@ train.py\ntry:\n    from broken import BATCH\nexcept ImportError:\n    BATCH = ⟦64⟧\n"
        "loader = DataLoader(d, BATCH)\n@@ broken.py\ndef (:\n"
    )


def test_functions_that_a_framework_calls_are_followed() -> None:
    """A data module's hooks run though no line of the project calls them."""
    sites = check_sites(
        "import lightning as L\nclass Data(L.LightningDataModule):\n    def __init__(self, bs: int = ⟦64⟧, vbs=9):\n"
        "        super().__init__()\n        self.save_hyperparameters()\n    def train_dataloader(self):\n"
        "        return DataLoader(d, batch_size=self.hparams.bs)\n    def val_dataloader(self):\n"
        "        return DataLoader(d, batch_size=self.hparams.vbs)\nL.Trainer().fit(model, datamodule=Data())",
        SiteKind.FUNCTION_DEFAULT,
        "bs",
    )
    assert [site.evaluation for site in sites] == [False, True]


def test_training_arguments_without_a_size_say_what_to_add() -> None:
    """The library's own default is no literal of the project."""
    program = (
        "from transformers import Trainer, TrainingArguments\nt = Trainer(args=TrainingArguments('o'))\nt.train()\n"
    )
    files = MemoryFiles(files={f"{ROOT}/train.py": program.encode()})
    assert find_sites(files, f"{ROOT}/train.py") == ()
    assert "add per_device_train_batch_size=8" in why_no_site(files, f"{ROOT}/train.py")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("x = load()\nnet = make()\nfor _ in range(9):\n    net(x).sum().backward()\n", "whole data at once"),
        (_HEAD + "loader = DataLoader(d)\n" + _STEP, "add batch_size=1"),
        (_HEAD + "loader = DataLoader(d, batch_size=cfg.size)\n" + _STEP, "`cfg.size`"),
        ("def broken(:\n", "not Python"),
        (
            "import json\nc = json.load(open('gone.json'))\n" + _HEAD + "loader = DataLoader(d, c['b'])\n" + _STEP,
            "gone.json",
        ),
    ],
)
def test_a_program_without_a_site_says_why(program: str, told: str) -> None:
    """And where to look."""
    files = MemoryFiles(files={f"{ROOT}/train.py": program.encode()})
    assert not any(site.resolved for site in find_sites(files, f"{ROOT}/train.py"))
    assert told in why_no_site(files, f"{ROOT}/train.py")


def test_a_missing_file_has_no_site() -> None:
    """An entry that was deleted is told."""
    files = MemoryFiles(files={})
    assert find_sites(files, f"{ROOT}/train.py") == ()
    assert "can't be read" in why_no_site(files, f"{ROOT}/train.py")


_PROVIDERS = """\
import torch
{head}
def skyline_model_provider():
    return torch.nn.Linear(2, 1)
def skyline_input_provider({parameter}):
    return (torch.randn(batch_size, 2),)
def skyline_iteration_provider(model):
    return lambda x: model(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("head", "parameter", "kind"),
    [
        ("", "batch_size=⟦32⟧", SiteKind.PROVIDER_DEFAULT),
        ("", "batch_size: int = ⟦32⟧", SiteKind.PROVIDER_DEFAULT),
        ("", "*, batch_size=⟦32⟧", SiteKind.PROVIDER_DEFAULT),
        ("SIZE = ⟦32⟧", "batch_size=SIZE", SiteKind.CONSTANT),
        ("SIZE = ⟦8⟧", "batch_size=SIZE * 4", SiteKind.CONSTANT),
    ],
)
def test_a_providers_default_is_the_site(head: str, parameter: str, kind: SiteKind) -> None:
    """Written there, or followed from there."""
    site = check_sites(_PROVIDERS.format(head=head, parameter=parameter), kind)[0]
    assert site.batch_size == 32


def test_the_last_of_two_providers_is_the_site() -> None:
    """As in Python, the second definition wins."""
    first = _PROVIDERS.format(head="", parameter="batch_size=16")
    check_sites(first + _PROVIDERS.format(head="", parameter="batch_size=⟦32⟧"), SiteKind.PROVIDER_DEFAULT)


def test_a_provider_without_default_says_what_to_add() -> None:
    """No site, and the way out."""
    text = _PROVIDERS.format(head="", parameter="batch_size")
    files = MemoryFiles(files={f"{ROOT}/train.py": text.encode()})
    assert find_sites(files, f"{ROOT}/train.py") == ()
    assert (
        why_no_site(files, f"{ROOT}/train.py")
        == "`batch_size` has no default in `skyline_input_provider`; add one, such as 32"
    )


def test_finding_twice_gives_the_same() -> None:
    """Results depend on the files alone."""
    case = read_case(_in_program("b = {'x': 4 * 8}\nloader = DataLoader(d, b['x'])\ntest_bs = 9"))
    assert find_sites(case.files, case.entry) == find_sites(case.files, case.entry)


def test_windows_paths_are_given_back_as_they_came() -> None:
    """Drives and backslashes: modules and configuration files are found, and sites name them as the project does."""
    program = (
        _HEAD + "from pkg.sizes import NAME\nimport os, yaml\nhere = os.path.dirname(os.path.abspath(__file__))\n"
        "cfg = yaml.safe_load(open(os.path.join(here, 'conf', NAME)))\nloader = DataLoader(d, cfg['b'])\n" + _STEP
    )
    root = "C:\\work\\project"
    files = MemoryFiles(
        files={
            f"{root}\\train.py": program.encode(),
            f"{root}\\pkg\\sizes.py": b"NAME = 'a.yaml'\n",
            f"{root}\\conf\\a.yaml": b"b: 64\n",
        },
        root=root,
    )
    best = find_sites(files, f"{root}\\train.py")[0]
    assert (best.path, best.value) == (f"{root}\\conf\\a.yaml", 64)


def test_a_configuration_file_in_utf16_has_its_own_offsets() -> None:
    """The edit replaces two bytes a digit there."""
    config = "batch_size: 64\n".encode("utf-16")
    program = _in_program("import yaml\nloader = DataLoader(d, yaml.safe_load(open('c.yaml'))['batch_size'])")
    files = MemoryFiles(files={f"{ROOT}/train.py": program.encode(), f"{ROOT}/c.yaml": config})
    site = find_sites(files, f"{ROOT}/train.py")[0]
    after = apply(config, set_batch_size(site, 128))
    assert after == "batch_size: 128\n".encode("utf-16")

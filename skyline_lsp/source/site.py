"""A batch-size site: a place where the batch size is written as an integer."""

import enum
from dataclasses import dataclass


class SiteKind(enum.Enum):
    """In what the literal stands."""

    PROVIDER_DEFAULT = "provider_default"
    """Default of the input provider's `batch_size`."""
    DATALOADER = "dataloader"
    """Argument of the data loader itself."""
    TRAINING_ARGUMENTS = "training_arguments"
    """Argument of a library's training configuration, such as `TrainingArguments`."""
    CONSTANT = "constant"
    """A variable of a module or of a function."""
    ATTRIBUTE = "attribute"
    """An attribute of an object, such as `config.batch_size = 64`."""
    CLASS_ATTRIBUTE = "class_attribute"
    DATACLASS_FIELD = "dataclass_field"
    """A field of a dataclass, a NamedTuple or a model class."""
    DICT_ENTRY = "dict_entry"
    FUNCTION_DEFAULT = "function_default"
    CALL_ARGUMENT = "call_argument"
    """Positional argument of a call."""
    CALL_KEYWORD = "call_keyword"
    ARGPARSE = "argparse"
    CLICK = "click"
    TYPER = "typer"
    ABSL = "absl"
    TYRO = "tyro"
    ENVIRONMENT_DEFAULT = "environment_default"
    """What is taken where an environment variable is not set."""
    EXPRESSION = "expression"
    """Part of a calculation."""
    YAML = "yaml"
    TOML = "toml"
    JSON = "json"
    INI = "ini"
    RUN_CONFIGURATION = "run_configuration"
    """An argument of the command line, which no file of the project holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A literal that sets the batch size, or might."""

    path: str
    """Absolute."""
    line: int
    """1-based."""
    column: int
    """1-based, in code points: the first of `text`."""
    start: int
    """Byte offset of `text` in the file's bytes."""
    end: int
    text: str
    """The literal as written: digits, or "-1" or "None" where the size is found automatically."""
    value: int
    """The literal's value; 0 for "None"."""
    kind: SiteKind
    name: str
    """What the user calls it: "BATCH_SIZE", "--batch-size", "train.batch_size"."""
    editable: bool
    """Whether writing another number here changes the batch size as far as can be told without running."""
    reason: str
    """Why this is the site, and what stands between it and the batch, in a sentence."""
    evaluation: bool
    """Whether it sets the batch size of evaluation only."""
    rank: int
    """0 is the best."""
    multiplier: int = 1
    """The batch size is `value * multiplier // divisor`."""
    divisor: int = 1
    maximum: int | None = None
    """The program uses no larger batch, whatever is written here; None where no such limit is seen."""
    resolved: bool = True
    """Whether it was followed from what feeds the model; False for a mere name that speaks of batches."""

    @property
    def batch_size(self) -> int:
        """The batch size that the site gives."""
        return self.value * self.multiplier // self.divisor

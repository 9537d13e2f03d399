"""All rules, one after the other."""

from collections.abc import Callable, Iterable, Mapping

from skyline_lsp.features.advice.advice import Advice, Case
from skyline_lsp.features.advice.data_loading import data_loading, pinned_memory
from skyline_lsp.features.advice.devices import channels_last, matrix_sizes, mixed_precision, synchronization
from skyline_lsp.features.advice.gradients import unused_gradient, zero_grad
from skyline_lsp.features.advice.normalization import bias_before_norm
from skyline_lsp.features.advice.optimizers import fused_optimizer
from skyline_lsp.features.advice.switches import is_switched_off
from skyline_lsp.protocol import Profile

RULES: tuple[Callable[[Case], Iterable[Advice]], ...] = (
    data_loading,
    pinned_memory,
    synchronization,
    mixed_precision,
    channels_last,
    matrix_sizes,
    fused_optimizer,
    zero_grad,
    unused_gradient,
    bias_before_norm,
)


def advise(profile: Profile, texts: Mapping[str, str]) -> tuple[Advice, ...]:
    """What is advised for a program, by path and line; `texts` are its files when it was profiled.

    Comments that switch advice off are minded; settings are not known here.
    """
    # Without lines a profile is still under way, and nothing is known to be worth anything.
    if not profile.lines or profile.iteration.run_time_ms <= 0:
        return ()
    case = Case(profile, texts)
    found = dict.fromkeys(advice for rule in RULES for advice in rule(case))
    kept = [one for one in found if not is_switched_off(case.texts.get(one.path, ""), one.line, one.code.value)]
    return tuple(sorted(kept, key=lambda one: (one.path, one.line, one.code.value)))

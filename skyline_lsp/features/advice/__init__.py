"""What would make the step cheaper, each with what was measured of it.

Pure functions of a profile and the texts that were profiled. Where it is not sure that something would help, nothing is
said: each piece of advice is worth some percent of the iteration, or costs nothing to follow.
"""

from skyline_lsp.features.advice.advice import Advice, AdviceCode, Change
from skyline_lsp.features.advice.advising import advise
from skyline_lsp.features.advice.devices import HALF
from skyline_lsp.features.advice.switches import is_switched_off
from skyline_lsp.features.advice.trial import precision_sentence

__all__ = ["HALF", "Advice", "AdviceCode", "Change", "advise", "is_switched_off", "precision_sentence"]

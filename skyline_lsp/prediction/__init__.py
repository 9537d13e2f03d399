"""What other batch sizes cost: models of time and memory fitted to samples, and retuning by wish. Pure functions."""

from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.prediction.model import Model, Prediction, fit, predict
from skyline_lsp.prediction.peak_memory import PeakMemoryModel
from skyline_lsp.prediction.retuning import Refusal, Retune, for_memory, for_throughput, knee, largest_that_fits
from skyline_lsp.prediction.run_time import RunTimeModel

__all__ = [
    "Estimate",
    "Model",
    "PeakMemoryModel",
    "Prediction",
    "Refusal",
    "Retune",
    "RunTimeModel",
    "fit",
    "for_memory",
    "for_throughput",
    "knee",
    "largest_that_fits",
    "predict",
]

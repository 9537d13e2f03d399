"""What other batch sizes, and other devices, cost: models fitted to samples, and retuning by wish. Pure functions."""

from skyline_lsp.prediction.companions import Accumulation, LearningRateRule, accumulation, learning_rate_rules
from skyline_lsp.prediction.devices import DEVICES, DeviceSpec, parse_device, parse_size
from skyline_lsp.prediction.elsewhere import FoundPeak, PeakThere, exact_peak, peak_there, time_there
from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.prediction.model import Model, Outcome, Prediction, fit, hold_against, learn, predict
from skyline_lsp.prediction.peak_memory import Calibration, PeakLaw, PeakMemoryModel, peak_law
from skyline_lsp.prediction.refusal import Refusal
from skyline_lsp.prediction.retuning import Retune, for_memory, for_throughput, knee, largest_that_fits
from skyline_lsp.prediction.run_time import RunTimeModel
from skyline_lsp.prediction.sampling import Known, Spent, expected_seconds, next_batch_size, next_batch_size_for
from skyline_lsp.prediction.scaling import LineWork, ScaledTime, scale_time

__all__ = [
    "DEVICES",
    "Accumulation",
    "Calibration",
    "DeviceSpec",
    "Estimate",
    "FoundPeak",
    "Known",
    "LearningRateRule",
    "LineWork",
    "Model",
    "Outcome",
    "PeakLaw",
    "PeakMemoryModel",
    "PeakThere",
    "Prediction",
    "Refusal",
    "Retune",
    "RunTimeModel",
    "ScaledTime",
    "Spent",
    "accumulation",
    "exact_peak",
    "expected_seconds",
    "fit",
    "for_memory",
    "for_throughput",
    "hold_against",
    "knee",
    "largest_that_fits",
    "learn",
    "learning_rate_rules",
    "next_batch_size",
    "next_batch_size_for",
    "parse_device",
    "parse_size",
    "peak_law",
    "peak_there",
    "predict",
    "scale_time",
    "time_there",
]

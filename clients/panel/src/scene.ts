// What the page knows, and what follows from it: the state that the source is in, and the one that is previewed.

import type { MemoryClasses, Prediction, Profile, StateMessage } from "./messages";
import type { Predictions } from "./predictions";

export interface Preview {
  batchSize: number;
  /** Null while the server has not said yet. */
  prediction: Prediction | null;
  /** The edit is on its way. */
  applying: boolean;
}

export interface Scene {
  state: StateMessage | null;
  profile: Profile | null;
  predictions: Predictions | null;
  preview: Preview | null;
}

/** The numbers of one batch size, measured or predicted. */
export interface Figures {
  batchSize: number | null;
  prediction: Prediction;
  /** Whether they are this source's, measured. */
  measured: boolean;
}

/** The figures of the batch size that the source has now; null where nothing is known. */
export function currentFigures(scene: Scene): Figures | null {
  const { state, profile, predictions } = scene;
  if (!profile) return null;
  const batchSize = state?.batchSize ?? profile.batchSize;
  if (batchSize !== profile.batchSize && batchSize !== null) {
    const prediction = predictions?.at(batchSize);
    if (prediction) return { batchSize, prediction, measured: false };
  }
  return { batchSize: profile.batchSize, prediction: measured(profile), measured: batchSize === profile.batchSize };
}

/** The figures to show: of the preview, else the current ones. */
export function shownFigures(scene: Scene): Figures | null {
  const { preview } = scene;
  if (!preview?.prediction) return currentFigures(scene);
  return { batchSize: preview.batchSize, prediction: preview.prediction, measured: false };
}

/** What a batch size is predicted to do, from the table; null where only the server can tell. */
export function lookUp(scene: Scene, batchSize: number): Prediction | null {
  const current = currentFigures(scene);
  if (current?.batchSize === batchSize) return current.prediction;
  return scene.predictions?.at(batchSize) ?? null;
}

/** Composition of memory at a peak, as the figures have it: activations grow with the batch, the lasting parts don't. */
export function composition(profile: Profile, figures: Figures): MemoryClasses {
  const memory = profile.memory;
  const peak = figures.prediction.peakBytes?.value;
  if (figures.measured || peak === undefined || !profile.batchSize || figures.batchSize === null) return memory;
  const lasting = memory.weights + memory.gradients + memory.optimizer;
  const room = Math.max(0, peak - lasting);
  const activations = Math.min(room, (memory.activations * figures.batchSize) / profile.batchSize);
  return { ...memory, activations, other: room - activations };
}

/** What turns measured costs into shown ones. */
export interface Growth {
  time: number;
  memory: MemoryClasses;
  peakBytes: number;
}

/** How the measured costs grow to those of the figures. */
export function growth(profile: Profile, figures: Figures): Growth {
  const memory = composition(profile, figures);
  const ratio = (kind: keyof MemoryClasses) => (profile.memory[kind] > 0 ? memory[kind] / profile.memory[kind] : 1);
  return {
    time: figures.prediction.runTimeMs.value / profile.iteration.runTimeMs,
    memory: {
      weights: ratio("weights"),
      gradients: ratio("gradients"),
      optimizer: ratio("optimizer"),
      activations: ratio("activations"),
      other: ratio("other"),
    },
    peakBytes: figures.prediction.peakBytes?.value ?? profile.iteration.peakBytes,
  };
}

/** Costs as measured. */
export function unchanged(profile: Profile | null): Growth {
  return {
    time: 1,
    memory: { weights: 1, gradients: 1, optimizer: 1, activations: 1, other: 1 },
    peakBytes: profile?.iteration.peakBytes ?? 0,
  };
}

function measured(profile: Profile): Prediction {
  const { runTimeMs, spreadMs, samplesPerSecond, peakBytes } = profile.iteration;
  const low = Math.max(runTimeMs - spreadMs / 2, runTimeMs / 2);
  const high = runTimeMs + spreadMs / 2;
  return {
    batchSize: profile.batchSize ?? 0,
    runTimeMs: { value: runTimeMs, low, high },
    samplesPerSecond: {
      value: samplesPerSecond,
      low: (samplesPerSecond * runTimeMs) / high,
      high: (samplesPerSecond * runTimeMs) / low,
    },
    peakBytes: { value: peakBytes, low: peakBytes, high: peakBytes },
    fits: profile.device.memoryBytes === null ? null : peakBytes <= profile.device.memoryBytes,
    measured: true,
  };
}

// What the server sends and what it is asked; `skyline_lsp/panel/wire.py` is the same on the server's side.

export type Status = "idle" | "running" | "ready" | "stale" | "failed";

export interface Site {
  path: string;
  line: number;
  name: string;
  value: number;
  editable: boolean;
  reason: string;
}

export interface Estimate {
  value: number;
  low: number;
  high: number;
}

export interface Prediction {
  batchSize: number;
  runTimeMs: Estimate;
  samplesPerSecond: Estimate;
  peakBytes: Estimate | null;
  fits: boolean | null;
  measured: boolean;
}

export interface HistoryEntry {
  measuredAt: string;
  batchSize: number | null;
  runTimeMs: number;
  spreadMs: number;
  samplesPerSecond: number;
  peakBytes: number;
  device: string;
  predicted: Prediction | null;
}

export interface Advice {
  code: string;
  message: string;
  path: string | null;
  line: number | null;
}

export interface StateMessage {
  type: "state";
  project: string;
  workload: string | null;
  state: Status;
  progress: string | null;
  fraction: number | null;
  failure: { message: string; path: string | null; line: number | null } | null;
  outdated: boolean;
  batchSize: number | null;
  sites: Site[];
  noSiteReason: string | null;
  history: HistoryEntry[];
  advice: Advice[];
}

/** Texts are indices into `names`, -1 for none. Rows are nodes; a parent stands before its children. */
export interface TreeColumns {
  parent: number[];
  path: number[];
  line: number[];
  function: number[];
  module: number[];
  label: number[];
  text: number[];
  forwardMs: number[];
  backwardMs: number[];
  recomputeMs: number[];
  activationBytes: number[];
  peakBytes: number[];
  invocations: number[];
  flop: number[];
  names: string[];
}

export interface MemoryClasses {
  weights: number;
  gradients: number;
  optimizer: number;
  activations: number;
  other: number;
}

export interface Profile {
  device: { kind: string; name: string; memoryBytes: number | null };
  batchSize: number | null;
  microBatches: number;
  iteration: {
    runTimeMs: number;
    spreadMs: number;
    iterations: number;
    samplesPerSecond: number;
    peakBytes: number;
  };
  untrackedMs: number;
  memory: MemoryClasses;
  phases: { kind: string; runTimeMs: number }[];
  parameters: { names: string[]; weights: number[]; gradients: number[] };
  timeline: { timesMs: number[]; bytes: number[] };
  tree: TreeColumns;
  warnings: string[];
}

export interface ProfileMessage {
  type: "profile";
  profile: Profile | null;
}

export interface EstimateColumns {
  value: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
}

export interface PredictionColumns {
  capacityBytes: number | null;
  batchSizes: number[];
  runTimeMs: EstimateColumns;
  samplesPerSecond: EstimateColumns;
  peakBytes: EstimateColumns;
  fits: (boolean | null)[];
  measured: boolean[];
  /** The fitted laws alone, at measured sizes too; all null where nothing could be fitted. */
  fitted: { samplesPerSecond: EstimateColumns; peakBytes: EstimateColumns };
  samples: {
    batchSizes: number[];
    runTimeMs: number[];
    spreadMs: number[];
    samplesPerSecond: (number | null)[];
    peakBytes: number[];
  };
  outOfMemory: number[];
  problems: string[];
  suggestions: { name: string; batchSize: number; reason: string }[];
}

export interface PredictionsMessage {
  type: "predictions";
  predictions: PredictionColumns | null;
}

export interface HighlightMessage {
  type: "highlight";
  path: string | null;
  line: number | null;
}

export interface ReplyMessage {
  type: "reply";
  id: number;
  error: string | null;
  prediction?: Prediction | null;
}

export type Message = StateMessage | ProfileMessage | PredictionsMessage | HighlightMessage | ReplyMessage;

export type Wish =
  | { method: "predict" | "apply"; batchSize: number }
  | { method: "reveal"; path: string; line: number }
  | { method: "profile" | "cancel" };

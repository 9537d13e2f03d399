/** What the server's commands take and give. Field names are the server's; units stand in them. */

/** A predicted number with its 90 % interval. */
export interface Estimate {
  value: number;
  low: number;
  high: number;
}

/** Answer of `skyline.predict`. */
export interface Prediction {
  batchSize: number;
  runTimeMs: Estimate;
  samplesPerSecond: Estimate;
  peakBytes: Estimate | null;
  fits: boolean | null;
  measured: boolean;
  problems?: string[];
}

/** Answer of `skyline.predict` with `measure: false` where nothing is known to predict from. */
export interface NothingKnown {
  known: false;
}

/** One of the answer of `skyline.devices`. */
export interface Device {
  device: string;
  memoryBytes: number;
  source: string;
}

/** Answer of `skyline.estimate`. */
export interface Estimated extends Device {
  batchSize: number;
  fits: boolean | null;
  /** All of it, for the user. */
  text: string;
}

/** One of the answer of `skyline.sites`. */
export interface Site {
  path: string;
  line: number;
  column: number;
  value: number;
  name: string;
  editable: boolean;
  reason?: string | null;
}

/** Answer of `skyline.setBatchSize`. */
export interface Edited {
  applied: boolean;
  path: string;
  line: number;
  old: string;
  new: string;
  /** Why it was not applied. */
  reason?: string | null;
}

/** Answer of `skyline.retune`, and of `skyline.setBatchSize` where there is no `edit`. */
export interface Retuned extends Partial<Edited> {
  edit?: Edited;
}

/** One of the answer of `skyline.costs`. */
export interface Cost {
  line: number;
  share: number;
  forwardMs: number;
  backwardMs: number;
  activationBytes: number;
}

/** Answer of `skyline.status`. */
export interface Status {
  root: string;
  /** What could be profiled, relative to the root. */
  programs?: string[];
  state: "idle" | "running" | "ready" | "stale" | "failed";
  workload?: { path: string } | null;
  activity?: string | null;
  progress?: string | null;
  batchSize?: number | null;
  failure?: { message: string; path: string | null; line: number | null } | null;
  profile?: { runTimeMs: number; samplesPerSecond: number | null; peakBytes: number } | null;
}

/** What `skyline.setBatchSize` is given by a lens that offers a choice. */
export interface Choice {
  batchSize: number;
  title: string;
}

export function isPrediction(answer: unknown): answer is Prediction {
  return typeof answer === "object" && answer !== null && "runTimeMs" in answer;
}

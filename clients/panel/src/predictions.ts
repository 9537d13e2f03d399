// The table of predictions that came with the model: looked up while a bar is pulled, so that pulling never waits.

import { bisectLeft } from "d3-array";
import type { Estimate, EstimateColumns, Prediction, PredictionColumns } from "./messages";

export type Quantity = "rate" | "peak";

export class Predictions {
  readonly sizes: number[];
  private readonly curves: Record<Quantity, number[]>;

  constructor(readonly columns: PredictionColumns) {
    this.sizes = columns.batchSizes;
    this.curves = {
      rate: rising(columns.fitted.samplesPerSecond, columns.samplesPerSecond),
      peak: rising(columns.fitted.peakBytes, columns.peakBytes),
    };
  }

  /** Whether there is more than one batch size to choose from. */
  get useful(): boolean {
    return this.sizes.length > 1;
  }

  get capacity(): number | null {
    return this.columns.capacityBytes;
  }

  /** The prediction at a row of the table. */
  row(index: number): Prediction {
    const columns = this.columns;
    return {
      batchSize: this.sizes[index] ?? 0,
      runTimeMs: estimate(columns.runTimeMs, index) ?? { value: NaN, low: NaN, high: NaN },
      samplesPerSecond: estimate(columns.samplesPerSecond, index) ?? { value: NaN, low: NaN, high: NaN },
      peakBytes: estimate(columns.peakBytes, index),
      fits: columns.fits[index] ?? null,
      measured: columns.measured[index] ?? false,
    };
  }

  /** The prediction for a batch size, between two rows along the line through them; null beyond the table. */
  at(size: number): Prediction | null {
    const index = bisectLeft(this.sizes, size);
    const above = this.sizes[index];
    if (above === size) return this.row(index);
    const below = this.sizes[index - 1];
    if (above === undefined || below === undefined) return null;
    const share = (size - below) / (above - below);
    const low = this.row(index - 1);
    const high = this.row(index);
    const runTimeMs = between(low.runTimeMs, high.runTimeMs, share);
    const factor = (low.samplesPerSecond.value * low.runTimeMs.value) / low.batchSize;
    const samples = size * factor;
    return {
      batchSize: size,
      runTimeMs,
      samplesPerSecond: {
        value: samples / runTimeMs.value,
        low: samples / runTimeMs.high,
        high: samples / runTimeMs.low,
      },
      peakBytes: low.peakBytes && high.peakBytes ? between(low.peakBytes, high.peakBytes, share) : null,
      fits: low.fits === high.fits ? low.fits : null,
      measured: false,
    };
  }

  /** The batch size whose predicted quantity is nearest to `value`. */
  sizeFor(quantity: Quantity, value: number): number {
    const curve = this.curves[quantity];
    const above = Math.min(bisectLeft(curve, value), curve.length - 1);
    const below = Math.max(0, above - 1);
    const nearer = value - (curve[below] ?? 0) < (curve[above] ?? 0) - value ? below : above;
    return this.sizes[nearer] ?? 1;
  }

  /** The next size of the table, `steps` rows up or down. */
  step(size: number, steps: number): number {
    const index = bisectLeft(this.sizes, size);
    const start = steps > 0 && this.sizes[index] !== size ? index - 1 : index;
    return this.sizes[Math.min(this.sizes.length - 1, Math.max(0, start + steps))] ?? size;
  }

  /** The size of the table nearest to `size`. */
  nearest(size: number): number {
    const index = Math.min(bisectLeft(this.sizes, size), this.sizes.length - 1);
    const above = this.sizes[index] ?? size;
    const below = this.sizes[index - 1] ?? above;
    return size - below < above - size ? below : above;
  }

  get smallest(): number {
    return this.sizes[0] ?? 1;
  }

  /** The largest size that is not known to be too large. */
  get largest(): number {
    for (let index = this.sizes.length - 1; index >= 0; index--) {
      if (this.columns.fits[index] !== false) return this.sizes[index] ?? 1;
    }
    return this.smallest;
  }

  /** The largest size of the table up to `size`, or the first beyond where that is none. */
  upTo(size: number): number {
    return this.sizes[Math.min(this.sizes.length - 1, bisectLeft(this.sizes, size))] ?? 1;
  }

  /** The fitted law, for drawing. */
  fitted(quantity: Quantity): { size: number; estimate: Estimate }[] {
    const { fitted } = this.columns;
    const columns = quantity === "rate" ? fitted.samplesPerSecond : fitted.peakBytes;
    const rows: { size: number; estimate: Estimate }[] = [];
    this.sizes.forEach((size, index) => {
      const found = estimate(columns, index);
      if (found) rows.push({ size, estimate: found });
    });
    return rows;
  }
}

/** The law along the table, never falling, so that a position on a bar has one batch size. */
function rising(fitted: EstimateColumns, known: EstimateColumns): number[] {
  let highest = 0;
  return fitted.value.map((value, index) => (highest = Math.max(highest, value ?? known.value[index] ?? 0)));
}

function estimate(columns: EstimateColumns, index: number): Estimate | null {
  const value = columns.value[index];
  const low = columns.low[index];
  const high = columns.high[index];
  return value == null || low == null || high == null ? null : { value, low, high };
}

function between(a: Estimate, b: Estimate, share: number): Estimate {
  const mix = (x: number, y: number) => x + (y - x) * share;
  return { value: mix(a.value, b.value), low: mix(a.low, b.low), high: mix(a.high, b.high) };
}

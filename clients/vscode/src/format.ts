/** Numbers as the user reads them. */

import type { Estimate, Prediction } from "./protocol";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

export function milliseconds(value: number): string {
  return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${rounded(value)} ms`;
}

export function throughput(value: number): string {
  return `${rounded(value)} samples/s`;
}

export function memory(bytes: number): string {
  return bytes >= GIB ? `${(bytes / GIB).toFixed(2)} GiB` : `${(bytes / MIB).toFixed(0)} MiB`;
}

/** A whole number of at least 1. */
export function parseBatchSize(text: string): number | undefined {
  return /^\d+$/.test(text.trim()) && Number(text) >= 1 ? Number(text) : undefined;
}

export function summary(prediction: Prediction): string {
  const parts = [milliseconds(prediction.runTimeMs.value), throughput(prediction.samplesPerSecond.value)];
  if (prediction.peakBytes) {
    parts.push(memory(prediction.peakBytes.value));
  }
  if (prediction.fits === false) {
    parts.push("does not fit");
  }
  return parts.join(" · ");
}

export function intervals(prediction: Prediction): string {
  const how = prediction.measured ? "measured" : "predicted";
  const parts = [
    `${how}: ${between(prediction.runTimeMs, milliseconds)}`,
    between(prediction.samplesPerSecond, throughput),
  ];
  if (prediction.peakBytes) {
    parts.push(between(prediction.peakBytes, memory));
  }
  return parts.join(", ");
}

function between(estimate: Estimate, format: (value: number) => string): string {
  const low = format(estimate.low);
  const high = format(estimate.high);
  return low === high ? low : `${low} to ${high}`;
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

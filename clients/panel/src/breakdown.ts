// The profile as two trees of blocks: where an iteration's time goes, and what is alive when memory is highest.

import type { MemoryClasses, Profile, TreeColumns } from "./messages";
import { count, formatBytes, formatMs, formatShare } from "./units";

export type BlockKind = "whole" | "line" | "untracked" | "class" | "group";

/** One rectangle of an icicle. */
export interface Block {
  kind: BlockKind;
  /** What is written on it, after the place. */
  name: string;
  /** Its whole name, for its details. */
  title: string;
  /** "resnet.py:47", with the file's last name only. */
  place: string;
  path: string | null;
  line: number | null;
  /** "models/resnet.py:47", the same for all blocks of a line; null where it is no line. */
  key: string | null;
  /** The value that is its own: not its children's. */
  own: number;
  children: Block[];
  /** Row of the profile's tree; -1 where it is none. */
  row: number;
  /** Share, 0 to 1, of its value that is forward; null where that means nothing. */
  forward: number | null;
  /** Lower-case text that a search looks in. */
  searched: string;
  /** The class of memory; null for times. */
  memory: keyof MemoryClasses | null;
}

/** Sums over each node and what it calls. */
export interface Inclusive {
  forwardMs: Float64Array;
  backwardMs: Float64Array;
  activationBytes: Float64Array;
}

const MEMORY_NAMES: Record<keyof MemoryClasses, string> = {
  weights: "weights",
  gradients: "gradients",
  optimizer: "optimizer state",
  activations: "activations",
  other: "other",
};

export const MEMORY_CLASSES = Object.keys(MEMORY_NAMES) as (keyof MemoryClasses)[];

export function memoryName(kind: keyof MemoryClasses): string {
  return MEMORY_NAMES[kind];
}

export function inclusive(tree: TreeColumns): Inclusive {
  const sums = {
    forwardMs: Float64Array.from(tree.forwardMs),
    backwardMs: Float64Array.from(tree.backwardMs),
    activationBytes: Float64Array.from(tree.activationBytes),
  };
  for (let row = tree.parent.length - 1; row >= 0; row--) {
    const parent = tree.parent[row] ?? -1;
    if (parent < 0) continue;
    for (const column of Object.values(sums)) column[parent] = (column[parent] ?? 0) + (column[row] ?? 0);
  }
  return sums;
}

export function timeBlocks(profile: Profile, sums: Inclusive): Block {
  const tree = profile.tree;
  const forwardShare = (row: number) => {
    const forward = sums.forwardMs[row] ?? 0;
    const all = forward + (sums.backwardMs[row] ?? 0);
    return all > 0 ? forward / all : null;
  };
  const tops = lineBlocks(tree, (row) => (tree.forwardMs[row] ?? 0) + (tree.backwardMs[row] ?? 0), forwardShare, null);
  const untracked = block({ kind: "untracked", name: "on no line", own: Math.max(0, profile.untrackedMs) });
  return block({ kind: "whole", name: "iteration", children: untracked.own > 0 ? [...tops, untracked] : tops });
}

export function memoryBlocks(profile: Profile): Block {
  const { tree, memory, parameters } = profile;
  const classes = MEMORY_CLASSES.filter((kind) => memory[kind] > 0).map((kind) => {
    let children: Block[] = [];
    // What was saved, or has a gradient, in the whole iteration may be more than what is alive at the peak.
    const fitted = (sizes: number[]) => {
      const all = sizes.reduce((sum, size) => sum + size, 0);
      return all > memory[kind] ? memory[kind] / all : 1;
    };
    if (kind === "weights" || kind === "gradients") {
      const sizes = kind === "weights" ? parameters.weights : parameters.gradients;
      const scale = fitted(sizes);
      children = parameterBlocks(parameters.names, sizes.map((size) => size * scale), kind);
    } else if (kind === "activations") {
      const scale = fitted(tree.activationBytes);
      children = lineBlocks(tree, (row) => (tree.activationBytes[row] ?? 0) * scale, () => null, kind);
    }
    const below = children.reduce((sum, child) => sum + total(child), 0);
    return block({
      kind: "class",
      name: memoryName(kind),
      own: Math.max(0, memory[kind] - below),
      children,
      memory: kind,
    });
  });
  return block({ kind: "whole", name: "peak", children: classes });
}

/** A block's cost as it is shown: measured, or of a preview. */
export interface Cost {
  value: number;
  whole: number;
  /** What turns measured values of this block into shown ones. */
  scale: number;
  unit: "time" | "memory";
}

/** What a block costs and what it is, in short phrases. */
export function facts(item: Block, cost: Cost, profile: Profile, sums: Inclusive): string[] {
  const tree = profile.tree;
  const row = item.row;
  const { value, whole, scale } = cost;
  const times = cost.unit === "time";
  const format = times ? formatMs : formatBytes;
  const found = [`${format(value)} (${formatShare(whole > 0 ? value / whole : 0)})`];
  if (item.kind === "untracked") found.push("time that no line of the project accounts for");
  if (item.kind === "line" && times) {
    const forward = sums.forwardMs[row] ?? 0;
    const backward = sums.backwardMs[row] ?? 0;
    if (backward > 0) found.push(`forward ${formatMs(forward * scale)}, backward ${formatMs(backward * scale)}`);
    const recompute = tree.recomputeMs[row] ?? 0;
    if (recompute > 0) found.push(`${formatMs(recompute * scale)} of it recomputed`);
    if (item.children.length > 0) found.push(`itself ${formatMs(item.own * scale)}`);
  }
  if (item.kind === "line" && !times) {
    const saved = sums.activationBytes[row] ?? 0;
    found.push(`${formatBytes(saved * scale)} saved for backward`);
    if (item.children.length > 0) found.push(`itself ${formatBytes((tree.activationBytes[row] ?? 0) * scale)}`);
  }
  if (item.kind === "line") {
    const runs = tree.invocations[row] ?? 0;
    if (runs > 1) found.push(`runs ${count(runs, "time")}`);
    const label = tree.names[tree.label[row] ?? -1];
    if (label) found.push(label);
  }
  return found;
}

function total(item: Block): number {
  let sum = 0;
  const pending = [item];
  for (let next = pending.pop(); next; next = pending.pop()) {
    sum += next.own;
    for (const child of next.children) pending.push(child);
  }
  return sum;
}

function lineBlocks(
  tree: TreeColumns,
  own: (row: number) => number,
  forward: (row: number) => number | null,
  memory: keyof MemoryClasses | null,
): Block[] {
  const tops: Block[] = [];
  const blocks: Block[] = [];
  for (let row = 0; row < tree.parent.length; row++) {
    const path = tree.names[tree.path[row] ?? -1] ?? "";
    const line = tree.line[row] ?? 0;
    const text = tree.names[tree.text[row] ?? -1];
    const called = tree.names[tree.function[row] ?? -1] ?? "";
    const module = tree.names[tree.module[row] ?? -1];
    const made = block({
      kind: "line",
      name: module ?? text ?? called,
      place: `${path.slice(path.lastIndexOf("/") + 1)}:${line}`,
      path,
      line,
      key: `${path}:${line}`,
      own: Math.max(0, own(row)),
      row,
      forward: forward(row),
      searched: [path, `${path}:${line}`, text, called, module, tree.names[tree.label[row] ?? -1]]
        .filter(Boolean)
        .join("\n")
        .toLowerCase(),
      memory,
    });
    blocks.push(made);
    (blocks[tree.parent[row] ?? -1]?.children ?? tops).push(made);
  }
  return tops;
}

function parameterBlocks(names: string[], sizes: number[], memory: keyof MemoryClasses): Block[] {
  const top = block({ kind: "group", name: "" });
  const groups = new Map<string, Block>([["", top]]);
  names.forEach((name, index) => {
    const size = sizes[index] ?? 0;
    if (size <= 0) return;
    const parts = name.split(".");
    let above = top;
    parts.forEach((part, depth) => {
      const full = parts.slice(0, depth + 1).join(".");
      let group = groups.get(full);
      if (!group) {
        group = block({ kind: "group", name: part, title: full, searched: full.toLowerCase(), memory });
        groups.set(full, group);
        above.children.push(group);
      }
      above = group;
    });
    above.own += size;
  });
  return top.children;
}

function block(given: Partial<Block> & Pick<Block, "kind" | "name">): Block {
  return {
    title: given.name,
    place: "",
    path: null,
    line: null,
    key: null,
    own: 0,
    children: [],
    row: -1,
    forward: null,
    searched: given.name.toLowerCase(),
    memory: null,
    ...given,
  };
}

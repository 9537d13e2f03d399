// The lists below the drawings: what was measured before, and what would make the step cheaper.

import { button, html } from "./dom";
import type { Advice, HistoryEntry } from "./messages";
import { count, formatBytes, formatChange, formatMs, formatRange, formatRate } from "./units";

const SHOWN = 8;

/** Past profiles, the newest first, each against the one before it. */
export function historyTable(entries: HistoryEntry[], all: boolean, showAll: () => void): Node[] {
  const last = entries.at(-1);
  if (!last) return [html("p", { class: "empty" }, "Each profile is kept here, to compare.")];
  const head = ["when", "batch", "samples/s", "iteration", "peak", "predicted"];
  const rows = entries.map((entry, index) => historyRow(entry, entries[index - 1])).reverse();
  const parts: Node[] = [beforeAfter(entries)];
  parts.push(
    html(
      "div",
      { class: "table-box", tabindex: 0, role: "region", "aria-label": "past profiles" },
      html(
        "table",
        {},
        html("thead", {}, html("tr", {}, ...head.map((name) => html("th", { scope: "col" }, name)))),
        html("tbody", {}, ...rows.slice(0, all ? undefined : SHOWN)),
      ),
    ),
  );
  if (!all && rows.length > SHOWN) parts.push(button(`Show all ${rows.length}`, "quiet", showAll));
  return parts;
}

function beforeAfter(entries: HistoryEntry[]): Node {
  const after = entries.at(-1);
  const before = entries.at(-2);
  if (!after || !before) return html("p", { class: "note" }, "The first profile; the next is compared with it.");
  const rate = formatChange(before.samplesPerSecond, after.samplesPerSecond);
  const peak = formatChange(before.peakBytes, after.peakBytes);
  const sizes = before.batchSize === after.batchSize ? "" : `batch size ${before.batchSize} → ${after.batchSize}, `;
  const text = `Since the profile before: ${sizes}throughput ${rate}, peak memory ${peak}.`;
  return html("p", { class: "note" }, text);
}

function historyRow(entry: HistoryEntry, before: HistoryEntry | undefined): HTMLElement {
  const against = (now: number, then: number | undefined) =>
    then === undefined ? null : html("small", {}, ` ${formatChange(then, now)}`);
  const { predicted } = entry;
  const missed = predicted ? formatRate(predicted.samplesPerSecond.value) : "";
  const how = predicted
    ? `${formatRange(predicted.samplesPerSecond.low, predicted.samplesPerSecond.high, formatRate)} samples/s expected`
    : "";
  return html(
    "tr",
    {},
    html("td", { title: entry.device }, html("time", { datetime: entry.measuredAt, title: entry.measuredAt }, when(entry.measuredAt))),
    html("td", {}, entry.batchSize === null ? "?" : String(entry.batchSize)),
    html("td", {}, formatRate(entry.samplesPerSecond), against(entry.samplesPerSecond, before?.samplesPerSecond)),
    html("td", { title: `spread ${formatMs(entry.spreadMs)}` }, formatMs(entry.runTimeMs)),
    html("td", {}, formatBytes(entry.peakBytes), against(entry.peakBytes, before?.peakBytes)),
    html("td", { title: how }, missed, predicted ? against(entry.samplesPerSecond, predicted.samplesPerSecond.value) : null),
  );
}

function when(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const today = new Date().toDateString() === date.toDateString();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return today ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** Advice, each with a way to its line. */
export function adviceList(advice: Advice[], warnings: string[], open: (path: string, line: number) => void): Node[] {
  if (advice.length === 0 && warnings.length === 0) {
    return [html("p", { class: "empty" }, "Nothing was seen that would make the step cheaper.")];
  }
  const items = advice.map((item) => {
    const { path, line } = item;
    const place = path !== null && line !== null ? button(`${path}:${line}`, "place", () => open(path, line)) : null;
    return html("li", {}, html("p", {}, item.message), html("p", { class: "source" }, place, html("code", {}, item.code)));
  });
  const remarks = warnings.map((text) => html("li", { class: "remark" }, html("p", {}, text)));
  return [html("ul", { class: "advice", "aria-label": count(advice.length, "hint") }, ...items, ...remarks)];
}

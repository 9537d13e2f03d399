// Drawings with two axes: a quantity by batch size, and memory over the iteration.

import { bisectLeft } from "d3-array";
import { scaleLinear, type ScaleLinear } from "d3-scale";
import { area, curveLinear, curveStepAfter, line } from "d3-shape";
import { html, onResize, setText, svg } from "./dom";
import type { Estimate } from "./messages";

const HEIGHT = 190;
const MARGIN = { top: 10, right: 12, bottom: 24 };

export interface Point {
  x: number;
  y: number;
}

export interface PlotData {
  xTicks: (highest: number, about: number) => { value: number; text: string }[];
  yTicks: (highest: number, about: number) => { value: number; text: string }[];
  highestX: number;
  lowestX: number;
  highestY: number;
  /** Joined by lines. */
  curve: Point[];
  /** Filled down to the axis, and holding its value until the next point. */
  filled: boolean;
  band: { x: number; low: number; high: number }[];
  samples: { x: number; estimate: Estimate }[];
  limit: { value: number; text: string } | null;
  /** Upright lines: where the source is, where a preview is. */
  marks: { x: number; y: number | null; className: string; text: string }[];
  xName: string;
  /** What stands below the pointer. */
  read: (x: number) => { x: number; y: number; text: string } | null;
  /** The drawing in a sentence. */
  summary: string;
}

export class Plot {
  readonly element: HTMLElement;
  private readonly drawing = svg("svg", { role: "img", class: "plot", height: HEIGHT });
  private readonly readout = html("p", { class: "readout" });
  private readonly pointer = svg("g", { class: "plot-pointer" });
  private width = 0;
  private data: PlotData | null = null;
  private x: ScaleLinear<number, number> = scaleLinear();
  private y: ScaleLinear<number, number> = scaleLinear();
  private left = 0;

  constructor(
    id: string,
    className: string,
  ) {
    this.drawing.id = id;
    this.element = html("div", { class: `plot-box ${className}` }, this.drawing, this.readout);
    onResize(this.element, (width) => {
      this.width = width;
      this.draw();
    });
    this.drawing.addEventListener("pointermove", (event) => this.read(event.offsetX));
    this.drawing.addEventListener("pointerleave", () => this.read(null));
  }

  show(data: PlotData | null): void {
    this.data = data;
    this.element.hidden = data === null;
    this.draw();
  }

  private draw(): void {
    const { data, width } = this;
    if (!data || width === 0) return;
    const rows = data.yTicks(data.highestY, 4);
    this.left = 10 + 6.4 * Math.max(...rows.map((tick) => tick.text.length));
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const x = (this.x = scaleLinear([data.lowestX, data.highestX], [this.left, right]));
    const y = (this.y = scaleLinear([0, data.highestY], [bottom, MARGIN.top]));
    this.drawing.setAttribute("width", String(width));
    this.drawing.setAttribute("aria-label", data.summary);
    const parts: SVGElement[] = [];
    for (const tick of rows) {
      const at = y(tick.value);
      parts.push(svg("line", { class: "grid", x1: this.left, x2: right, y1: at, y2: at }));
      parts.push(svg("text", { class: "tick", x: this.left - 6, y: at + 4, "text-anchor": "end" }, tick.text));
    }
    for (const tick of data.xTicks(data.highestX, Math.floor(width / 70))) {
      parts.push(svg("text", { class: "tick", x: x(tick.value), y: HEIGHT - 7, "text-anchor": "middle" }, tick.text));
    }
    parts.push(svg("text", { class: "tick axis-name", x: right, y: HEIGHT - 7, "text-anchor": "end" }, data.xName));
    if (data.limit && data.limit.value <= data.highestY) {
      const at = y(data.limit.value);
      parts.push(svg("rect", { class: "beyond", x: this.left, y: MARGIN.top, width: right - this.left, height: Math.max(0, at - MARGIN.top) }));
      parts.push(svg("line", { class: "limit", x1: this.left, x2: right, y1: at, y2: at }));
      parts.push(svg("text", { class: "limit-name", x: right - 4, y: at + 14, "text-anchor": "end" }, data.limit.text));
    }
    // What rises beyond the axes is cut off there.
    const box = [this.left, MARGIN.top, Math.max(1, right - this.left), bottom - MARGIN.top];
    const inside = svg("svg", { x: box[0], y: box[1], width: box[2], height: box[3], viewBox: box.join(" ") });
    inside.classList.add("plot-inside");
    parts.push(inside);
    if (data.band.length > 1) {
      const shape = area<(typeof data.band)[number]>((row) => x(row.x), (row) => y(row.low), (row) => y(row.high));
      inside.append(svg("path", { class: "band", d: shape(data.band) }));
    }
    const curve = data.filled ? curveStepAfter : curveLinear;
    if (data.filled) {
      const shape = area<Point>((point) => x(point.x), y(0), (point) => y(point.y)).curve(curve);
      inside.append(svg("path", { class: "filled", d: shape(data.curve) }));
    }
    const path = line<Point>((point) => x(point.x), (point) => y(point.y)).curve(curve);
    inside.append(svg("path", { class: "curve", d: path(data.curve) }));
    for (const sample of data.samples) {
      const at = x(sample.x);
      const { value, low, high } = sample.estimate;
      if (sample.x > data.highestX || value > data.highestY) continue;
      if (high > low) parts.push(svg("line", { class: "whisker", x1: at, x2: at, y1: y(low), y2: y(high) }));
      parts.push(svg("circle", { class: "sample", cx: at, cy: y(value), r: 3.5 }));
    }
    for (const mark of data.marks) {
      const at = x(mark.x);
      // A name stands on the side where no other mark is, and where there is room.
      const crowded = data.marks.some((other) => other !== mark && other.x >= mark.x && x(other.x) - at < 40);
      const nearRight = at > right - 80 || (crowded && at > this.left + 30);
      parts.push(svg("line", { class: `mark ${mark.className}`, x1: at, x2: at, y1: MARGIN.top, y2: bottom }));
      if (mark.y !== null && mark.y <= data.highestY) parts.push(svg("circle", { class: `spot ${mark.className}`, cx: at, cy: y(mark.y), r: 5 }));
      if (mark.text) {
        parts.push(
          svg(
            "text",
            { class: `mark-name ${mark.className}`, x: at + (nearRight ? -5 : 5), y: MARGIN.top + 9, "text-anchor": nearRight ? "end" : "start" },
            mark.text,
          ),
        );
      }
    }
    this.pointer.replaceChildren();
    this.drawing.replaceChildren(...parts, this.pointer);
    setText(this.readout, "");
  }

  private read(offset: number | null): void {
    const found =
      offset === null || !this.data || offset < this.left
        ? null
        : this.data.read(Math.min(this.data.highestX, this.x.invert(offset)));
    this.pointer.replaceChildren();
    setText(this.readout, found?.text ?? "");
    if (!found) return;
    const at = this.x(found.x);
    this.pointer.append(
      svg("line", { x1: at, x2: at, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
      svg("circle", { cx: at, cy: this.y(Math.min(found.y, this.data?.highestY ?? found.y)), r: 3 }),
    );
  }
}

/** Round numbers for an axis of batch sizes. */
export function sizeTicks(lowest: number, highest: number, about: number): { value: number; text: string }[] {
  const ticks = scaleLinear([lowest, highest], [0, 1])
    .ticks(about)
    .filter((value) => Number.isInteger(value) && value > 0);
  return ticks.map((value) => ({ value, text: String(value) }));
}

/** The element of sorted `values` nearest to `value`. */
export function nearestIndex(values: number[], value: number): number {
  const above = Math.min(bisectLeft(values, value), values.length - 1);
  const below = Math.max(0, above - 1);
  return value - (values[below] ?? 0) < (values[above] ?? 0) - value ? below : above;
}

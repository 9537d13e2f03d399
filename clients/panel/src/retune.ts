// Two bars and a number, to pull at: throughput, peak memory, batch size. Each shows what the others become.

import { scaleLinear } from "d3-scale";
import { Bar, SizeField, type BarView, type Puller, type Segment } from "./bar";
import { MEMORY_CLASSES, memoryName } from "./breakdown";
import { button, html, setText } from "./dom";
import type { Estimate, Prediction } from "./messages";
import type { Quantity } from "./predictions";
import { composition, currentFigures, lookUp, shownFigures, type Figures, type Scene } from "./scene";
import { byteTicks, formatBytes, formatChange, formatMs, formatRange, formatRate } from "./units";

const HEADROOM = 1.08;
const REACH = 4;
const SETTLE_MS = 150;

export interface Wishes {
  preview(batchSize: number | null, prediction: Prediction | null): void;
  predict(batchSize: number): Promise<{ prediction: Prediction | null; error: string | null }>;
  apply(batchSize: number): Promise<string | null>;
  reveal(path: string, line: number): void;
}

export class Retune {
  readonly element: HTMLElement;
  private readonly throughput: Bar;
  private readonly memory: Bar;
  private readonly size: SizeField;
  private readonly where = html("span", { class: "where" });
  private readonly offer = html("div", { class: "offer" });
  private readonly offerText = html("p", { class: "offer-text" });
  private readonly suggestions = html("p", { class: "suggestions" });
  private readonly applyButton: HTMLButtonElement;
  private readonly cancelButton: HTMLButtonElement;
  private readonly measureButton: HTMLButtonElement;
  private readonly notice = html("p", { class: "notice", role: "status" });
  private readonly problems = html("p", { class: "note problems" });
  private scene: Scene = { state: null, profile: null, predictions: null, preview: null };
  private asking = 0;
  private measuring = false;
  /** What was last written into the source from here. */
  private written: number | null = null;

  constructor(private readonly wishes: Wishes) {
    const puller = (quantity: Quantity): Puller => ({
      pulled: (value) => this.previewSize(this.scene.predictions?.sizeFor(quantity, value) ?? null),
      stepped: (step) => this.step(step),
      settled: (how) => this.settle(how),
      cancelled: () => this.cancel(),
    });
    this.throughput = new Bar("throughput", "Throughput", puller("rate"));
    this.memory = new Bar("memory", "Peak memory", puller("peak"));
    this.size = new SizeField({
      stepped: (step) => this.step(step),
      settled: (how) => this.settle(how),
      cancelled: () => this.cancel(),
      typed: (batchSize) => this.previewSize(batchSize),
    });
    this.applyButton = button("Apply", "primary", () => void this.apply());
    this.cancelButton = button("Cancel", "quiet", () => this.cancel());
    this.measureButton = button("Measure other batch sizes", "primary", () => void this.measure());
    this.offer.append(this.measureButton, this.offerText, this.suggestions, html("div", { class: "actions" }, this.applyButton, this.cancelButton));
    this.element = html(
      "section",
      { class: "retune", "aria-labelledby": "retune-title" },
      html(
        "header",
        {},
        html("h2", { id: "retune-title" }, "Retune"),
        this.size.element,
        this.where,
        html("p", { class: "hint", id: "bar-keys" }, "Pull a bar, or use the arrow keys; Enter applies, Escape cancels."),
      ),
      html("div", { class: "bars" }, this.throughput.element, this.memory.element),
      this.offer,
      this.notice,
      this.problems,
    );
  }

  show(scene: Scene): void {
    this.scene = scene;
    const shown = shownFigures(scene);
    const current = currentFigures(scene);
    this.element.hidden = !shown || !current;
    if (!shown || !current) return;
    this.throughput.show(this.throughputView(shown, current));
    this.memory.show(this.memoryView(shown, current));
    const sizeShown = scene.preview?.batchSize ?? current.batchSize;
    this.size.show(sizeShown, this.fixed() === null && !scene.preview?.applying);
    this.showWhere();
    this.showOffer(shown, current);
    this.element.classList.toggle("unpullable", this.fixed() !== null);
    const missing = !scene.predictions?.useful;
    this.measureButton.hidden = !missing;
    this.measureButton.disabled = this.measuring || scene.state?.state === "running";
    setText(this.problems, scene.predictions?.columns.problems.join(" ") ?? "");
    this.problems.hidden = this.problems.textContent === "";
  }

  /** Say something about an edit. */
  say(text: string, bad = false): void {
    setText(this.notice, text);
    this.notice.classList.toggle("bad", bad);
  }

  /** The source has another batch size now: what was previewed or said was against the old one. */
  edited(batchSize: number | null): void {
    if (this.scene.preview?.applying) return;
    this.cancel();
    if (batchSize !== this.written) this.say("");
  }

  /** The model is another one: a preview is predicted anew by it. */
  refresh(): void {
    const { preview } = this.scene;
    if (preview && !preview.applying) this.previewSize(preview.batchSize);
    else if (this.scene.state) this.show(this.scene);
  }

  /** Give up the preview. Returns whether there was one. */
  cancel(): boolean {
    this.asking++;
    this.throughput.letGo();
    this.memory.letGo();
    if (!this.scene.preview || this.scene.preview.applying) return false;
    this.wishes.preview(null, null);
    return true;
  }

  /** Why nothing can be pulled; null where it can. */
  private fixed(): string | null {
    const { predictions } = this.scene;
    if (!predictions) return "Other batch sizes have to be measured first.";
    if (!predictions.useful) return predictions.columns.problems[0] ?? "Too few batch sizes are measured to predict others.";
    return null;
  }

  /** Why the batch size can't be written; null where it can. */
  private unwritable(): string | null {
    const { state } = this.scene;
    if (state?.sites.some((site) => site.editable)) return null;
    return state?.noSiteReason ?? state?.sites[0]?.reason ?? "The batch size is not written where it could be edited.";
  }

  private step(step: "less" | "more" | "half" | "double" | "least" | "most"): void {
    const { predictions, preview } = this.scene;
    const from = preview?.batchSize ?? currentFigures(this.scene)?.batchSize;
    if (!predictions || !from || preview?.applying) return;
    const power = 2 ** Math.floor(Math.log2(from));
    const to = {
      less: () => predictions.step(from, -1),
      more: () => predictions.step(from, 1),
      half: () => predictions.nearest(power < from ? power : power / 2),
      double: () => predictions.nearest(2 * power),
      least: () => predictions.smallest,
      most: () => predictions.largest,
    }[step]();
    this.previewSize(to);
  }

  private previewSize(batchSize: number | null): void {
    if (batchSize === null || this.scene.preview?.applying) return;
    this.say("");
    const asking = ++this.asking;
    if (batchSize === currentFigures(this.scene)?.batchSize) {
      this.wishes.preview(null, null);
      return;
    }
    const known = lookUp(this.scene, batchSize);
    this.wishes.preview(batchSize, known);
    const listed = this.scene.predictions?.sizes.includes(batchSize);
    if (known && listed) return;
    // The table has most sizes; for the others the server is asked, once typing or stepping has paused.
    setTimeout(() => {
      if (asking !== this.asking) return;
      void this.wishes.predict(batchSize).then(({ prediction, error }) => {
        if (asking !== this.asking || this.scene.preview?.batchSize !== batchSize) return;
        if (prediction) this.wishes.preview(batchSize, prediction);
        else if (error) this.say(error, true);
      });
    }, SETTLE_MS);
  }

  private settle(how: "released" | "entered"): void {
    const { preview } = this.scene;
    if (!preview || preview.applying) return;
    // To let go of a bar beyond the limit is a way to look, not a wish to run out of memory.
    if (how === "released" && preview.prediction?.fits === false) {
      this.say("This does not fit into memory, so nothing was edited.", true);
      return;
    }
    void this.apply();
  }

  private async apply(): Promise<void> {
    const { preview } = this.scene;
    if (!preview || preview.applying) return;
    const reason = this.unwritable();
    if (reason !== null) {
      this.say(reason, true);
      return;
    }
    const before = currentFigures(this.scene)?.batchSize;
    preview.applying = true;
    this.show(this.scene);
    const error = await this.wishes.apply(preview.batchSize);
    this.wishes.preview(null, null);
    if (error === null) {
      this.written = preview.batchSize;
      this.say(`Batch size ${before ?? "?"} → ${preview.batchSize} is in the source; undo it in the editor.`);
    } else {
      this.say(error, true);
    }
  }

  private async measure(): Promise<void> {
    const size = currentFigures(this.scene)?.batchSize;
    this.measuring = true;
    this.show(this.scene);
    const { error } = await this.wishes.predict(size ? 2 * size : 2);
    this.measuring = false;
    if (error) this.say(error, true);
    this.show(this.scene);
  }

  private showWhere(): void {
    const site = this.scene.state?.sites.find((candidate) => candidate.editable);
    if (site) {
      const open = button(`${site.path}:${site.line}`, "place", () => this.wishes.reveal(site.path, site.line));
      open.title = site.reason;
      if (this.where.textContent !== `in ${site.path}:${site.line}`) this.where.replaceChildren("in ", open);
    } else {
      this.where.replaceChildren(this.unwritable() ?? "");
    }
  }

  private showSuggestions(current: Figures): void {
    const { predictions, preview } = this.scene;
    const found = (predictions?.columns.suggestions ?? []).filter((wish) => wish.batchSize !== current.batchSize);
    this.suggestions.hidden = preview !== null || found.length === 0;
    const key = JSON.stringify(found);
    if (this.suggestions.dataset["key"] === key) return;
    this.suggestions.dataset["key"] = key;
    this.suggestions.replaceChildren(
      "Try ",
      ...found.map((wish) => {
        const pick = button(`${wish.name}: ${wish.batchSize}`, "quiet", () => this.previewSize(wish.batchSize));
        pick.title = wish.reason;
        return pick;
      }),
    );
  }

  private showOffer(shown: Figures, current: Figures): void {
    const { preview } = this.scene;
    this.offer.classList.toggle("shown", preview !== null);
    this.applyButton.hidden = this.cancelButton.hidden = preview === null;
    this.showSuggestions(current);
    if (!preview) {
      const told = current.prediction.measured
        ? "This batch size was measured, not profiled: lines and classes of memory are scaled."
        : "This batch size is not measured yet: its numbers are predicted.";
      setText(this.offerText, current.measured ? "" : told);
      return;
    }
    this.applyButton.disabled = preview.applying || this.unwritable() !== null;
    this.cancelButton.disabled = preview.applying;
    const doubtful = preview.prediction?.fits === false;
    setText(this.applyButton, preview.applying ? "Applying…" : `${doubtful ? "Apply anyway" : "Apply"} ${preview.batchSize}`);
    const parts = [`Batch size ${current.batchSize ?? "?"} → ${preview.batchSize}`];
    if (preview.prediction) {
      const { samplesPerSecond, runTimeMs, peakBytes } = shown.prediction;
      parts.push(`throughput ${formatChange(current.prediction.samplesPerSecond.value, samplesPerSecond.value)}`);
      if (peakBytes && current.prediction.peakBytes) {
        parts.push(`memory ${formatChange(current.prediction.peakBytes.value, peakBytes.value)}`);
      }
      parts.push(`an iteration takes ${formatMs(runTimeMs.value)} (${formatRange(runTimeMs.low, runTimeMs.high, formatMs)})`);
      if (doubtful) parts.push("does not fit into memory");
    } else {
      parts.push("asking what it would do…");
    }
    setText(this.offerText, parts.join(", "));
  }

  private throughputView(shown: Figures, current: Figures): BarView {
    const rate = shown.prediction.samplesPerSecond;
    const highest = this.highest("rate", [rate.value, current.prediction.samplesPerSecond.value], null);
    const ticks = scaleLinear([0, highest], [0, 1]).ticks(5);
    return this.view(shown, rate, current.prediction.samplesPerSecond, highest, {
      ticks: ticks.map((value) => ({ value, text: formatRate(value) })),
      format: formatRate,
      unit: "samples/s",
      limit: null,
      segments: [],
      detail: "",
    });
  }

  private memoryView(shown: Figures, current: Figures): BarView {
    const { profile } = this.scene;
    const capacity = profile?.device.memoryBytes ?? null;
    const nothing = { value: 0, low: 0, high: 0 };
    const peak = shown.prediction.peakBytes ?? nothing;
    const before = current.prediction.peakBytes ?? nothing;
    const highest = this.highest("peak", [peak.value, before.value], capacity);
    const memory = profile ? composition(profile, shown) : null;
    const segments: Segment[] = MEMORY_CLASSES.filter((kind) => (memory?.[kind] ?? 0) > 0).map((kind) => ({
      name: `${memoryName(kind)} ${formatBytes(memory?.[kind] ?? 0)}`,
      className: kind,
      value: memory?.[kind] ?? 0,
    }));
    return this.view(shown, peak, before, highest, {
      ticks: byteTicks(highest, 4).map((value) => ({ value, text: value === 0 ? "0" : formatBytes(value) })),
      format: formatBytes,
      unit: "",
      limit: capacity,
      segments,
      detail: capacity === null ? "" : `of ${formatBytes(capacity)}`,
    });
  }

  private view(
    shown: Figures,
    now: Estimate,
    before: Estimate,
    highest: number,
    more: {
      ticks: BarView["ticks"];
      format: (value: number) => string;
      unit: string;
      limit: number | null;
      segments: Segment[];
      detail: string;
    },
  ): BarView {
    const previewed = this.scene.preview !== null;
    const unit = more.unit ? ` ${more.unit}` : "";
    const { measured } = shown.prediction;
    const interval = !measured && now.high > now.low ? formatRange(now.low, now.high, more.format) : "";
    const tooMuch = shown.prediction.fits === false;
    const text = `${more.format(now.value)}${unit}`;
    const details = [more.detail];
    if (interval) details.push(`90 %: ${interval}`);
    if (previewed) details.push(formatChange(before.value, now.value));
    const how = measured ? "measured" : "predicted";
    return {
      highest,
      ticks: more.ticks,
      value: now.value,
      low: measured ? now.value : now.low,
      high: measured ? now.value : now.high,
      before: previewed ? before.value : null,
      limit: more.limit,
      tooMuch,
      predicted: !measured,
      segments: more.segments,
      text,
      detail: details.filter(Boolean).join(" · "),
      spoken: `${text}${interval ? `, between ${interval}` : ""}, batch size ${shown.batchSize ?? "unknown"}, ${how}${tooMuch ? ", does not fit into memory" : ""}`,
      fixed: this.fixed(),
    };
  }

  /** Where an axis ends: it holds every prediction, but not much more than the limit. */
  private highest(quantity: Quantity, values: number[], limit: number | null): number {
    const { predictions } = this.scene;
    const columns = quantity === "rate" ? predictions?.columns.samplesPerSecond : predictions?.columns.peakBytes;
    // Four times the batch size at hand is within a pull's reach: an axis for more would make the usual pull tiny.
    const reach = Math.max(REACH * (currentFigures(this.scene)?.batchSize ?? 1), ...(predictions?.columns.samples.batchSizes ?? []));
    const known = (columns?.value ?? []).filter((value, index) => value !== null && (predictions?.sizes[index] ?? 0) <= reach);
    let highest = Math.max(...values, ...known.map(Number)) * HEADROOM;
    if (limit !== null && highest > limit) highest = Math.max(limit * 1.15, ...values.map((value) => value * HEADROOM));
    return highest > 0 ? highest : 1;
  }
}

// The page: takes what the server sends, keeps it, and has every part show it.

import { scaleLinear } from "d3-scale";
import { facts, inclusive, MEMORY_CLASSES, memoryBlocks, timeBlocks, type Cost, type Inclusive } from "./breakdown";
import { Connection, type Link } from "./connection";
import { button, html, setText } from "./dom";
import { Icicle, type Listener, type Node } from "./icicle";
import { adviceList, historyTable } from "./lists";
import type { Message, Profile, ReplyMessage, StateMessage, Wish } from "./messages";
import { nearestIndex, Plot, sizeTicks, type PlotData } from "./plot";
import { Predictions, type Quantity } from "./predictions";
import { Retune } from "./retune";
import { currentFigures, growth, shownFigures, unchanged, type Growth, type Scene } from "./scene";
import { onTheme } from "./theme";
import { byteTicks, count, formatBytes, formatMs, formatRange, formatRate, formatShare } from "./units";

const PHASES: Record<string, string> = {
  data_loading: "data loading",
  host_to_device: "host to device",
};

class Breakdown {
  readonly element: HTMLElement;
  readonly icicle: Icicle;
  private readonly crumbs = html("nav", { class: "crumbs" });
  private readonly details = html("div", { class: "details" });
  private readonly subtitle = html("p", { class: "note" });
  private hovered: Node | null = null;

  constructor(
    id: string,
    private readonly ramp: "time" | "memory",
    title: string,
    private readonly panel: Panel,
    private readonly facts: (node: Node) => string[],
    amount: (node: Node) => string,
  ) {
    const listener: Listener = {
      hovered: (node) => {
        this.hovered = node;
        this.panel.hover(node?.data.key ?? null);
        this.showDetails();
      },
      chosen: (node) => {
        this.panel.hover(node.data.key);
        this.showDetails();
      },
      opened: (node) => this.open(node),
      zoomed: () => {
        this.showCrumbs();
        this.showDetails();
      },
    };
    this.icicle = new Icicle(id, ramp, title, (node) => this.sentence(node), amount, listener);
    this.element = html(
      "section",
      { class: `breakdown ${ramp}`, "aria-labelledby": `${id}-title` },
      html("header", {}, html("h2", { id: `${id}-title` }, title), this.subtitle),
      this.crumbs,
      this.icicle.element,
      this.details,
    );
  }

  /** What the whole is made of, in a line. */
  explain(text: string): void {
    setText(this.subtitle, text);
  }

  showDetails(): void {
    const node = this.hovered ?? this.icicle.active ?? this.icicle.focus;
    if (!node) {
      this.details.replaceChildren();
      return;
    }
    const { path, line, name, title: whole } = node.data;
    const title = html("p", { class: "details-title" });
    if (path !== null && line !== null) {
      title.append(button(`${path}:${line}`, "place", () => this.open(node)), " ", html("code", {}, name));
    } else {
      title.append(html("strong", {}, whole));
    }
    const zoom = button("Zoom in", "quiet", () => this.icicle.zoom(node));
    zoom.disabled = node === this.icicle.focus || !node.children;
    this.details.replaceChildren(
      html("div", {}, title, html("p", { class: "facts" }, this.facts(node).join(" · "))),
      zoom,
    );
  }

  private open(node: Node): void {
    const { path, line } = node.data;
    if (path !== null && line !== null) this.panel.reveal(path, line);
  }

  private sentence(node: Node): string {
    const { place, title } = node.data;
    return `${place ? `${place} ` : ""}${title}: ${this.facts(node).join(", ")}`;
  }

  private showCrumbs(): void {
    const { focus } = this.icicle;
    this.crumbs.setAttribute("aria-label", `path in ${this.ramp}`);
    const back = button("Back", "quiet back", () => this.icicle.goBack());
    back.disabled = !this.icicle.zoomedIn;
    const path = focus?.ancestors().reverse() ?? [];
    const steps = path.map((node) => {
      const step = button(node.data.place || node.data.name, "crumb", () => this.icicle.zoom(node));
      if (node === focus) step.setAttribute("aria-current", "true");
      return step;
    });
    this.crumbs.replaceChildren(back, ...steps);
  }
}

class Panel {
  private readonly scene: Scene = { state: null, profile: null, predictions: null, preview: null };
  private sums: Inclusive | null = null;
  /** How measured costs turn into those that are shown. */
  private shown: Growth = unchanged(null);
  private cursor: string | null = null;
  private hoverKey: string | null = null;
  private allHistory = false;
  private readonly contents = new WeakMap<Element, string>();
  private drawn: unknown[] = [];
  private link: Link = "connecting";
  private readonly connection: Connection;
  private readonly retune: Retune;
  private readonly time: Breakdown;
  private readonly memory: Breakdown;
  private readonly timeline = new Plot("timeline", "memory-plot");
  private readonly ratePlot = new Plot("rate-plot", "rate-plot");
  private readonly peakPlot = new Plot("peak-plot", "memory-plot");
  private readonly status: HTMLElement;
  private readonly statusText = html("span", { class: "status-text" });
  private readonly progress = html("progress", { max: 1, "aria-label": "progress of the run" });
  private readonly heading = html("h1");
  private readonly device = html("p", { class: "device" });
  private readonly run: HTMLButtonElement;
  private readonly banner = html("p", { class: "banner", role: "alert", hidden: true });
  private readonly failure = html("div", { class: "failure", role: "alert", hidden: true });
  private readonly empty = html("p", { class: "empty", hidden: true }, "Profile the training step once, and what it costs is shown here.");
  private readonly found = html("output", { class: "found", for: "search" });
  private readonly search = html("input", { id: "search", type: "search", placeholder: "Find a line, function or parameter  ( / )", autocomplete: "off", spellcheck: "false", "aria-label": "Find a line, function or parameter" });
  private readonly history = html("div");
  private readonly advice = html("div");
  private readonly body: HTMLElement;

  constructor(root: HTMLElement) {
    this.connection = new Connection(
      (message) => this.hear(message),
      (link) => this.linked(link),
    );
    this.retune = new Retune({
      preview: (batchSize, prediction) => {
        this.scene.preview = batchSize === null ? null : { batchSize, prediction, applying: false };
        this.showNumbers();
      },
      predict: async (batchSize) => {
        const reply = await this.ask({ method: "predict", batchSize });
        return { prediction: reply.prediction ?? null, error: reply.error };
      },
      apply: async (batchSize) => {
        const { error } = await this.ask({ method: "apply", batchSize });
        return error;
      },
      reveal: (path, line) => this.reveal(path, line),
    });
    const factsOf = (cost: (node: Node) => Cost) => (node: Node) =>
      this.scene.profile && this.sums ? facts(node.data, cost(node), this.scene.profile, this.sums) : [];
    const time = (node: Node) => this.timeCost(node);
    const memory = (node: Node) => this.memoryCost(node);
    this.time = new Breakdown("time-icicle", "time", "Run time by line", this, factsOf(time), (node) =>
      formatMs(time(node).value),
    );
    this.memory = new Breakdown("memory-icicle", "memory", "Memory at the peak", this, factsOf(memory), (node) =>
      formatBytes(memory(node).value),
    );
    this.run = button("Profile", "primary", () => void this.startOrStop());
    this.status = html("div", { class: "status", role: "status" }, html("i", { class: "lamp" }), this.statusText, this.progress);
    this.body = html(
      "main",
      { hidden: true },
      this.retune.element,
      html(
        "div",
        { class: "tools" },
        this.search,
        this.found,
      ),
      html("div", { class: "pair" }, this.time.element, this.memory.element),
      html(
        "p",
        { class: "hint", id: "icicle-keys" },
        "Click opens the line in the editor, double-click or Enter zooms in, Backspace goes back, arrow keys move. " +
          "Colour: the line's own share; underline: the part of it that is forward.",
      ),
      html(
        "div",
        { class: "trio" },
        this.card("rate", "Throughput by batch size", this.ratePlot.element),
        this.card("peak", "Peak memory by batch size", this.peakPlot.element),
        this.card("timeline", "Memory over the iteration", this.timeline.element),
      ),
      html("div", { class: "pair" }, this.card("history", "History", this.history), this.card("advice", "Advice", this.advice)),
    );
    root.append(
      html("header", { class: "top" }, html("div", { class: "title" }, this.heading, this.device), this.status, this.run),
      this.banner,
      this.failure,
      this.empty,
      this.body,
    );
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    addEventListener("keydown", (event) => this.key(event));
    onTheme(() => this.recolour());
    this.connection.open();
  }

  /** The pointer is over a line, or over none: show it in both icicles. */
  hover(key: string | null): void {
    this.hoverKey = key;
    this.showHighlight();
  }

  reveal(path: string, line: number): void {
    void this.ask({ method: "reveal", path, line }).then((reply) => {
      if (reply.error) this.retune.say(reply.error, true);
    });
  }

  private ask(wish: Wish): Promise<ReplyMessage> {
    return this.connection.ask(wish);
  }

  private hear(message: Exclude<Message, ReplyMessage>): void {
    switch (message.type) {
      case "profile":
        this.scene.profile = message.profile;
        this.showProfile();
        break;
      case "predictions":
        this.scene.predictions = message.predictions && new Predictions(message.predictions);
        this.retune.refresh();
        break;
      case "state": {
        const edited = this.scene.state !== null && this.scene.state.batchSize !== message.batchSize;
        this.scene.state = message;
        // The source has another batch size now: what was previewed was against the old one.
        if (edited) this.retune.edited(message.batchSize);
        this.showState();
        break;
      }
      case "highlight":
        this.cursor = message.path !== null && message.line !== null ? `${message.path}:${message.line}` : null;
        this.showHighlight();
        break;
    }
  }

  private linked(link: Link): void {
    this.link = link;
    const texts: Record<Link, string> = {
      connecting: "",
      open: "",
      lost: "The connection to the language server is lost; trying again.",
      closed: "The language server has closed. Open the panel again from the editor.",
    };
    if (link !== "connecting") {
      setText(this.banner, texts[link]);
      this.banner.hidden = texts[link] === "";
    }
    document.documentElement.classList.toggle("offline", link === "lost" || link === "closed");
    this.run.disabled = this.link !== "open";
  }

  private showState(): void {
    const state = this.scene.state;
    if (!state) return;
    const title = state.workload ? `${state.project} · ${state.workload}` : state.project;
    setText(this.heading, title);
    document.title = `${state.project} – skyline`;
    this.status.dataset["state"] = state.state;
    setText(this.statusText, this.statusLine());
    const running = state.state === "running";
    this.progress.hidden = !running;
    if (running && state.fraction !== null) this.progress.value = state.fraction;
    else this.progress.removeAttribute("value");
    setText(this.run, running ? "Cancel" : this.scene.profile ? "Profile again" : "Profile");
    this.run.className = running || this.scene.profile ? "quiet" : "primary";
    this.showFailure();
    this.empty.hidden = this.scene.profile !== null || running;
    this.body.hidden = this.scene.profile === null;
    const warnings = this.scene.profile?.warnings ?? [];
    this.showLists(state, warnings);
    this.showNumbers();
  }

  /** Lists are made anew only when they differ: who has put the focus into one keeps it while a run reports. */
  private showLists(state: StateMessage, warnings: string[]): void {
    if (this.changed(this.history, [state.history, this.allHistory])) {
      const showAll = () => {
        this.allHistory = true;
        this.showState();
      };
      this.history.replaceChildren(...historyTable(state.history, this.allHistory, showAll));
    }
    if (this.changed(this.advice, [state.advice, warnings])) {
      this.advice.replaceChildren(...adviceList(state.advice, warnings, (path, line) => this.reveal(path, line)));
    }
  }

  /** Whether an element shows something else than `content`; it is taken to show it from now on. */
  private changed(element: Element, content: unknown): boolean {
    const text = JSON.stringify(content);
    if (this.contents.get(element) === text) return false;
    this.contents.set(element, text);
    return true;
  }

  private statusLine(): string {
    const { state, preview } = this.scene;
    if (!state) return "";
    if (state.state === "running") return `Profiling: ${state.progress ?? "starting"}`;
    if (preview) return `Showing a prediction for batch size ${preview.batchSize}`;
    const texts = {
      idle: "Not profiled yet",
      ready: "Up to date",
      stale: "The source has changed since it was profiled",
      failed: "The last run failed",
    };
    return state.state === "ready" && state.outdated ? texts.stale : texts[state.state];
  }

  private showFailure(): void {
    const failure = this.scene.state?.state === "failed" ? this.scene.state.failure : null;
    this.failure.hidden = failure === null;
    if (!failure || !this.changed(this.failure, failure)) return;
    const { path, line, message } = failure;
    const open = path !== null && line !== null ? button(`${path}:${line}`, "place", () => this.reveal(path, line)) : null;
    this.failure.replaceChildren(html("p", {}, message), open ?? "");
  }

  private showProfile(): void {
    const profile = this.scene.profile;
    this.sums = profile && inclusive(profile.tree);
    this.body.hidden = profile === null;
    this.time.icicle.show(profile && this.sums && timeBlocks(profile, this.sums));
    this.memory.icicle.show(profile && memoryBlocks(profile));
    if (!profile) return;
    const { device, batchSize, microBatches, iteration } = profile;
    const batch = batchSize === null ? "" : `batch size ${batchSize}${microBatches > 1 ? ` × ${microBatches} micro-batches` : ""}, `;
    setText(this.device, `${device.name || device.kind} · ${batch}median of ${count(iteration.iterations, "iteration")}`);
    this.time.explain(
      profile.phases
        .filter((phase) => phase.runTimeMs >= 0.005 * iteration.runTimeMs)
        .map((phase) => `${PHASES[phase.kind] ?? phase.kind} ${formatMs(phase.runTimeMs)}`)
        .join(" · "),
    );
    this.find();
    this.showTimeline(profile);
  }

  /** Everything that a preview changes. */
  private showNumbers(): void {
    const { profile } = this.scene;
    this.retune.show(this.scene);
    setText(this.statusText, this.statusLine());
    document.documentElement.classList.toggle("previewing", this.scene.preview !== null);
    const { predictions, preview, state } = this.scene;
    const drawn = [profile, predictions, preview, state?.batchSize];
    if (drawn.every((part, index) => part === this.drawn[index])) return;
    this.drawn = drawn;
    const figures = shownFigures(this.scene);
    if (profile && figures) {
      this.shown = figures.measured ? unchanged(profile) : growth(profile, figures);
      const kinds = MEMORY_CLASSES.filter((kind) => profile.memory[kind] > 0);
      const parts = kinds.map((kind) => profile.memory[kind]);
      const grown = kinds.map((kind) => profile.memory[kind] * this.shown.memory[kind]);
      this.memory.icicle.bend(figures.measured ? null : { from: edges(parts), to: edges(grown) });
      this.time.icicle.draw();
      this.memory.explain(
        figures.prediction.peakBytes
          ? `${formatBytes(figures.prediction.peakBytes.value)}${figures.measured ? "" : ", predicted"} · saved activations by the line that saved them`
          : "",
      );
    }
    this.time.showDetails();
    this.memory.showDetails();
    this.showPlots();
  }

  private timeCost(node: Node): Cost {
    const { time } = this.shown;
    const whole = (this.time.icicle.root?.value ?? 0) * time;
    return { value: (node.value ?? 0) * time, whole, scale: time, unit: "time" };
  }

  private memoryCost(node: Node): Cost {
    const { memory, peakBytes } = this.shown;
    const kind = node.data.memory;
    if (kind === null) return { value: peakBytes, whole: peakBytes, scale: 1, unit: "memory" };
    const scale = memory[kind];
    return { value: (node.value ?? 0) * scale, whole: peakBytes, scale, unit: "memory" };
  }

  private showHighlight(): void {
    for (const breakdown of [this.time, this.memory]) breakdown.icicle.highlight(this.hoverKey, this.cursor);
  }

  private showPlots(): void {
    const { predictions } = this.scene;
    this.ratePlot.show(predictions?.useful ? this.plotBySize(predictions, "rate") : null);
    this.peakPlot.show(predictions?.useful ? this.plotBySize(predictions, "peak") : null);
    for (const plot of [this.ratePlot, this.peakPlot]) {
      const card = plot.element.closest("section");
      if (card) card.hidden = !predictions?.useful;
    }
  }

  private plotBySize(predictions: Predictions, quantity: Quantity): PlotData {
    const { samples, capacityBytes } = predictions.columns;
    const rate = quantity === "rate";
    const format = rate ? (value: number) => `${formatRate(value)} samples/s` : formatBytes;
    const rows = predictions.fitted(quantity);
    const values = samples.batchSizes.map((size, index) => ({
      x: size,
      estimate: rate ? rateSpread(samples, index) : flat(samples.peakBytes[index] ?? 0),
    }));
    const limit = rate ? null : capacityBytes;
    let highestY = 1.08 * Math.max(...rows.map((row) => Math.min(row.estimate.high, 1.6 * row.estimate.value)), ...values.map((v) => v.estimate.value));
    if (limit !== null && highestY > limit) highestY = Math.max(1.1 * limit, 1.08 * Math.max(...values.map((v) => v.estimate.value)));
    const current = currentFigures(this.scene);
    const { preview } = this.scene;
    const marks: PlotData["marks"] = [];
    const at = (size: number, estimate: { value: number } | null, className: string) =>
      marks.push({ x: size, y: estimate?.value ?? null, className, text: String(size) });
    const quantityOf = (prediction: { samplesPerSecond: { value: number }; peakBytes: { value: number } | null }) =>
      rate ? prediction.samplesPerSecond : prediction.peakBytes;
    // Beyond one and a half times what fits there is nothing to learn.
    const last = predictions.upTo(1.5 * predictions.largest);
    if (current?.batchSize && current.batchSize <= last) at(current.batchSize, quantityOf(current.prediction), "current");
    if (preview?.prediction && preview.batchSize <= last) at(preview.batchSize, quantityOf(preview.prediction), "preview");
    return {
      xTicks: (highest, about) => sizeTicks(predictions.smallest, highest, about),
      yTicks: rate
        ? (highest, about) => scaleLinear([0, highest], [0, 1]).ticks(about).map((value) => ({ value, text: formatRate(value) }))
        : (highest, about) => byteTicks(highest, about).map((value) => ({ value, text: value === 0 ? "0" : formatBytes(value) })),
      lowestX: predictions.smallest,
      highestX: Math.max(last, predictions.smallest + 1),
      highestY,
      curve: rows.map((row) => ({ x: row.size, y: row.estimate.value })),
      filled: false,
      band: rows.map((row) => ({ x: row.size, low: row.estimate.low, high: row.estimate.high })),
      samples: values,
      limit: limit === null ? null : { value: limit, text: `memory: ${formatBytes(limit)}` },
      marks,
      xName: "",
      read: (x) => {
        const size = predictions.sizes[nearestIndex(predictions.sizes, x)];
        const prediction = size === undefined ? null : predictions.at(size);
        const estimate = prediction && (rate ? prediction.samplesPerSecond : prediction.peakBytes);
        if (!prediction || !estimate || size === undefined) return null;
        const how = prediction.measured ? "measured" : `predicted, ${formatRange(estimate.low, estimate.high, format)}`;
        return { x: size, y: estimate.value, text: `batch size ${size}: ${format(estimate.value)} (${how})` };
      },
      summary:
        `${rate ? "Throughput" : "Peak memory"} by batch size, from ${predictions.smallest} to ${last}: ` +
        values.map((v) => `${v.x}: ${format(v.estimate.value)}`).join(", "),
    };
  }

  private showTimeline(profile: Profile): void {
    const { timesMs, bytes } = profile.timeline;
    const card = this.timeline.element.closest("section");
    if (card) card.hidden = bytes.length < 2;
    if (bytes.length < 2) return;
    const peak = bytes.reduce((best, value, index) => (value > (bytes[best] ?? 0) ? index : best), 0);
    const peakBytes = bytes[peak] ?? 0;
    const capacity = profile.device.memoryBytes;
    const near = capacity !== null && capacity < 2 * peakBytes;
    const end = timesMs.at(-1) ?? 1;
    this.timeline.show({
      xTicks: () => [],
      yTicks: (highest, about) => byteTicks(highest, about).map((value) => ({ value, text: value === 0 ? "0" : formatBytes(value) })),
      lowestX: timesMs[0] ?? 0,
      highestX: end,
      highestY: 1.12 * Math.max(peakBytes, near ? capacity : 0),
      curve: timesMs.map((time, index) => ({ x: time, y: bytes[index] ?? 0 })),
      filled: true,
      band: [],
      samples: [],
      limit: capacity === null ? null : { value: capacity, text: `memory: ${formatBytes(capacity)}` },
      marks: [{ x: timesMs[peak] ?? 0, y: peakBytes, className: "peak", text: `peak ${formatBytes(peakBytes)}` }],
      xName: "operations, in their order →",
      read: (x) => {
        const index = nearestIndex(timesMs, x);
        const value = bytes[index] ?? 0;
        const share = formatShare(peakBytes > 0 ? value / peakBytes : 0);
        return { x: timesMs[index] ?? 0, y: value, text: `${formatBytes(value)} alive, ${share} of the peak` };
      },
      summary:
        `Memory over one iteration: starts at ${formatBytes(bytes[0] ?? 0)}, peaks at ${formatBytes(peakBytes)}, ` +
        `ends at ${formatBytes(bytes.at(-1) ?? 0)}${capacity === null ? "" : `, of ${formatBytes(capacity)}`}.`,
    });
  }

  private async startOrStop(): Promise<void> {
    const running = this.scene.state?.state === "running";
    const reply = await this.ask({ method: running ? "cancel" : "profile" });
    if (reply.error) this.retune.say(reply.error, true);
  }

  private find(): void {
    const query = this.search.value;
    const time = this.time.icicle.search(query);
    const memory = this.memory.icicle.search(query);
    const text =
      query.trim() === ""
        ? ""
        : time.blocks + memory.blocks === 0
          ? "nothing found"
          : `${formatShare(time.share)} of time, ${formatShare(memory.share)} of memory`;
    setText(this.found, text);
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      const found = this.time.icicle.nextMatch();
      const key = found?.data.key ?? null;
      if (key === null) this.memory.icicle.nextMatch();
    } else if (event.key === "Escape") {
      this.search.value = "";
      this.find();
      this.search.blur();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private key(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.search.focus();
      this.search.select();
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (this.retune.cancel()) event.preventDefault();
    }
  }

  private recolour(): void {
    this.time.icicle.recolour();
    this.memory.icicle.recolour();
  }

  private card(id: string, title: string, content: HTMLElement): HTMLElement {
    return html("section", { class: `card ${id}`, "aria-labelledby": `${id}-title` }, html("h2", { id: `${id}-title` }, title), content);
  }
}

function edges(parts: number[]): number[] {
  const whole = parts.reduce((sum, part) => sum + part, 0) || 1;
  const found = [0];
  for (const part of parts) found.push((found.at(-1) ?? 0) + part / whole);
  return found;
}

function flat(value: number): { value: number; low: number; high: number } {
  return { value, low: value, high: value };
}

function rateSpread(
  samples: Predictions["columns"]["samples"],
  index: number,
): { value: number; low: number; high: number } {
  const value = samples.samplesPerSecond[index] ?? 0;
  const time = samples.runTimeMs[index] ?? 1;
  const half = (samples.spreadMs[index] ?? 0) / 2;
  return { value, low: (value * time) / (time + half), high: (value * time) / Math.max(time / 2, time - half) };
}

const root = document.getElementById("panel");
if (root) new Panel(root);

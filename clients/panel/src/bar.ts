// A bar that is pulled: its end is a slider, and where it is pulled to is a batch size.

import { button, html, setText } from "./dom";

const START_PX = 4;

export interface Segment {
  name: string;
  className: string;
  value: number;
}

/** What a bar shows at one moment; values in its own unit. */
export interface BarView {
  /** The axis ends here. */
  highest: number;
  ticks: { value: number; text: string }[];
  value: number;
  low: number;
  high: number;
  /** Shown as a mark where it differs from `value`; null where nothing is previewed. */
  before: number | null;
  limit: number | null;
  tooMuch: boolean;
  predicted: boolean;
  segments: Segment[];
  text: string;
  detail: string;
  /** What the slider says to assistive technology. */
  spoken: string;
  /** Why it can't be pulled; null where it can. */
  fixed: string | null;
}

export interface Puller {
  /** The bar's end was pulled to this value. */
  pulled(value: number): void;
  stepped(step: "less" | "more" | "half" | "double" | "least" | "most"): void;
  /** Let go, or Enter. */
  settled(how: "released" | "entered"): void;
  cancelled(): void;
}

const KEYS: Record<string, Parameters<Puller["stepped"]>[0]> = {
  ArrowLeft: "less",
  ArrowDown: "less",
  ArrowRight: "more",
  ArrowUp: "more",
  PageDown: "half",
  PageUp: "double",
  Home: "least",
  End: "most",
};

export class Bar {
  readonly element: HTMLElement;
  private readonly value = html("span", { class: "bar-value" });
  private readonly detail = html("span", { class: "bar-detail" });
  private readonly track: HTMLElement;
  private readonly fill = html("div", { class: "bar-fill" });
  private readonly interval = html("div", { class: "bar-interval" });
  private readonly mark = html("div", { class: "bar-before" });
  private readonly limit = html("div", { class: "bar-limit" });
  private readonly handle = html("div", { class: "bar-handle" });
  private readonly axis = html("div", { class: "bar-axis", "aria-hidden": "true" });
  private readonly legend = html("ul", { class: "legend" });
  private view: BarView | null = null;
  private pull: { pointer: number; startX: number; grip: number; moved: boolean; axis: BarView } | null = null;

  constructor(
    readonly id: string,
    title: string,
    private readonly puller: Puller,
  ) {
    const name = html("span", { class: "bar-title", id: `${id}-title` }, title);
    this.track = html(
      "div",
      {
        class: "bar-track",
        id,
        role: "slider",
        tabindex: 0,
        "aria-labelledby": `${id}-title`,
        "aria-describedby": "bar-keys",
        "aria-orientation": "horizontal",
      },
      this.fill,
      this.limit,
      this.interval,
      this.mark,
      this.handle,
    );
    this.element = html(
      "div",
      { class: `bar ${id}` },
      html("div", { class: "bar-head" }, name, this.value, this.detail),
      this.track,
      this.axis,
      this.legend,
    );
    this.track.addEventListener("pointerdown", (event) => this.grab(event));
    this.track.addEventListener("pointermove", (event) => this.move(event));
    this.track.addEventListener("pointerup", (event) => this.release(event));
    this.track.addEventListener("pointercancel", () => this.letGo());
    this.track.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** Whether it is being pulled with a pointer. */
  get pulling(): boolean {
    return this.pull !== null;
  }

  show(wanted: BarView): void {
    // The axis stands still while its bar is pulled: else the same place would mean ever more.
    const axis = this.pull?.axis ?? wanted;
    const view = { ...wanted, highest: axis.highest, ticks: axis.ticks };
    this.view = view;
    const { track } = this;
    const share = (value: number) => `${(100 * Math.max(0, Math.min(1, value / view.highest))).toFixed(3)}%`;
    setText(this.value, view.text);
    setText(this.detail, view.detail);
    track.classList.toggle("predicted", view.predicted);
    track.classList.toggle("too-much", view.tooMuch);
    track.classList.toggle("fixed", view.fixed !== null);
    track.setAttribute("aria-valuemin", "0");
    track.setAttribute("aria-valuemax", String(Number(view.highest.toPrecision(4))));
    track.setAttribute("aria-valuenow", String(Number(view.value.toPrecision(4))));
    track.setAttribute("aria-valuetext", view.spoken);
    track.setAttribute("aria-disabled", String(view.fixed !== null));
    track.title = view.fixed ?? "";
    this.fill.style.setProperty("width", share(view.value));
    this.handle.style.setProperty("left", share(view.value));
    this.interval.hidden = !(view.high > view.low);
    this.interval.style.setProperty("left", share(view.low));
    this.interval.style.setProperty("width", `calc(${share(view.high)} - ${share(view.low)})`);
    this.mark.hidden = view.before === null;
    if (view.before !== null) this.mark.style.setProperty("left", share(view.before));
    this.limit.hidden = view.limit === null || view.limit > view.highest;
    if (view.limit !== null) this.limit.style.setProperty("left", share(view.limit));
    this.showSegments(view);
    this.showAxis(view, share);
  }

  private showSegments(view: BarView): void {
    const whole = view.segments.reduce((sum, segment) => sum + segment.value, 0);
    while (this.fill.children.length > view.segments.length) this.fill.lastElementChild?.remove();
    while (this.legend.children.length > view.segments.length) this.legend.lastElementChild?.remove();
    view.segments.forEach((segment, index) => {
      const part = this.fill.children[index] ?? this.fill.appendChild(html("div"));
      part.className = `bar-segment ${segment.className}`;
      (part as HTMLElement).style.setProperty("width", `${whole > 0 ? (100 * segment.value) / whole : 0}%`);
      const item = this.legend.children[index] ?? this.legend.appendChild(html("li", {}, html("i"), html("span")));
      if (item.firstElementChild) item.firstElementChild.className = segment.className;
      if (item.lastElementChild) setText(item.lastElementChild, segment.name);
    });
    this.legend.hidden = view.segments.length === 0;
  }

  private showAxis(view: BarView, share: (value: number) => string): void {
    while (this.axis.children.length > view.ticks.length) this.axis.lastElementChild?.remove();
    view.ticks.forEach((tick, index) => {
      const mark = (this.axis.children[index] ?? this.axis.appendChild(html("span"))) as HTMLElement;
      setText(mark, tick.text);
      mark.style.setProperty("left", share(tick.value));
      mark.classList.toggle("end", tick.value > 0.95 * view.highest);
    });
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0 || !this.view || this.view.fixed !== null) return;
    const box = this.track.getBoundingClientRect();
    const end = box.left + (Math.min(this.view.value, this.view.highest) / this.view.highest) * box.width;
    // Wherever it is gripped, the end moves as far as the pointer does: a touch never makes it jump.
    this.pull = { pointer: event.pointerId, startX: event.clientX, grip: event.clientX - end, moved: false, axis: this.view };
    this.track.setPointerCapture(event.pointerId);
    this.track.classList.add("pulled");
    this.track.focus({ preventScroll: true });
    event.preventDefault();
  }

  private move(event: PointerEvent): void {
    const { pull, view } = this;
    if (!pull || !view || event.pointerId !== pull.pointer) return;
    if (!pull.moved && Math.abs(event.clientX - pull.startX) < START_PX) return;
    pull.moved = true;
    const box = this.track.getBoundingClientRect();
    const share = (event.clientX - pull.grip - box.left) / box.width;
    this.puller.pulled(Math.max(0, Math.min(1, share)) * view.highest);
  }

  private release(event: PointerEvent): void {
    const pull = this.pull;
    if (!pull || event.pointerId !== pull.pointer) return;
    this.end();
    // A click is no pull: it must not rewrite the source.
    if (pull.moved) this.puller.settled("released");
  }

  /** Give up a pull under way. */
  letGo(): void {
    if (!this.pull) return;
    this.end();
    this.puller.cancelled();
  }

  private end(): void {
    if (!this.pull) return;
    if (this.track.hasPointerCapture(this.pull.pointer)) this.track.releasePointerCapture(this.pull.pointer);
    this.pull = null;
    this.track.classList.remove("pulled");
  }

  private pressed(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.view) return;
    const step = KEYS[event.key];
    if (step && this.view.fixed === null && !this.pull) this.puller.stepped(step);
    else if (event.key === "Enter" && this.view.fixed === null && !this.pull) this.puller.settled("entered");
    else if (event.key === "Escape") {
      if (this.pull) this.letGo();
      else this.puller.cancelled();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The number field of the batch size, with buttons for less and more. */
export class SizeField {
  readonly element: HTMLElement;
  readonly input = html("input", {
    id: "batch-size",
    type: "text",
    inputmode: "numeric",
    autocomplete: "off",
    spellcheck: "false",
    size: 7,
    "aria-describedby": "bar-keys",
  });
  private readonly less: HTMLButtonElement;
  private readonly more: HTMLButtonElement;
  private shown = "";

  constructor(puller: Omit<Puller, "pulled"> & { typed(batchSize: number): void }) {
    this.less = button("−", "step", () => puller.stepped("less"));
    this.less.setAttribute("aria-label", "smaller batch size");
    this.more = button("+", "step", () => puller.stepped("more"));
    this.more.setAttribute("aria-label", "larger batch size");
    this.element = html(
      "div",
      { class: "size-field" },
      html("label", { for: "batch-size" }, "Batch size"),
      html("span", { class: "size-box" }, this.less, this.input, this.more),
    );
    this.input.addEventListener("input", () => {
      const text = this.input.value.trim();
      const wrong = !/^\d{1,9}$/.test(text) || Number(text) < 1;
      this.input.setAttribute("aria-invalid", String(wrong));
      this.shown = this.input.value;
      if (!wrong) puller.typed(Number(text));
    });
    this.input.addEventListener("keydown", (event) => {
      const steps: Record<string, Parameters<Puller["stepped"]>[0]> = {
        ArrowUp: "more",
        ArrowDown: "less",
        PageUp: "double",
        PageDown: "half",
      };
      const step = steps[event.key];
      if (step) puller.stepped(step);
      else if (event.key === "Enter") puller.settled("entered");
      else if (event.key === "Escape") puller.cancelled();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  show(batchSize: number | null, enabled: boolean): void {
    const text = batchSize === null ? "" : String(batchSize);
    if (text !== this.shown || document.activeElement !== this.input) {
      this.shown = text;
      this.input.value = text;
      this.input.removeAttribute("aria-invalid");
    }
    for (const control of [this.input, this.less, this.more]) control.disabled = !enabled;
  }
}

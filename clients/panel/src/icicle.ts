// A zoomable icicle on a canvas: one row for each depth, a block as wide as its share of what is in view.
//
// Only blocks of at least a pixel are drawn, and children are found by bisection, so a frame costs as much as there are
// pixels, however many blocks there are. Beside the canvas, hidden elements tell assistive technology of the chosen
// block and its neighbours.

import { hierarchy, partition, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Block } from "./breakdown";
import { calm, html, onResize, setText } from "./dom";
import { heated, palette, type Palette } from "./theme";

export type Node = HierarchyRectangularNode<Block>;

const ROW = 24;
const MOST_ROWS = 14;
const LEAST_ROWS = 5;
const THINNEST = 0.75;
const ZOOM_MS = 220;
const TWICE_MS = 350;
const PADDING = 5;

export interface Listener {
  /** The pointer is over this block, or over none. */
  hovered(node: Node | null): void;
  /** A block was chosen. */
  chosen(node: Node): void;
  /** Its line is to be shown in the editor. */
  opened(node: Node): void;
  /** The view has changed. */
  zoomed(): void;
}

interface View {
  x0: number;
  x1: number;
}

/** Where the top blocks lie now, which a preview moves: block positions are mapped linearly from `from` to `to`. */
export interface Warp {
  from: number[];
  to: number[];
}

export class Icicle {
  readonly element: HTMLElement;
  root: Node | null = null;
  focus: Node | null = null;
  active: Node | null = null;

  private readonly scroller: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly items: HTMLElement;
  private readonly context: CanvasRenderingContext2D;
  private colours: Palette;
  private characterWidth = 7;
  private width = 0;
  private height = 0;
  private view: View = { x0: 0, x1: 1 };
  private motion: { from: View; to: View; start: number } | null = null;
  private drawing = 0;
  private back: Node[] = [];
  private hover: Node | null = null;
  private hottest = 1;
  private warp: Warp | null = null;
  private hoverKey: string | null = null;
  private cursorKey: string | null = null;
  private query = "";
  private readonly matches = new Set<Node>();
  private readonly above = new Set<Node>();
  private lastClick: { node: Node; time: number } | null = null;

  constructor(
    private readonly id: string,
    private readonly ramp: "time" | "memory",
    label: string,
    private readonly describe: (node: Node) => string,
    private readonly amount: (node: Node) => string,
    private readonly listener: Listener,
  ) {
    this.canvas = html("canvas", { "aria-hidden": "true" });
    this.spacer = html("div", { class: "icicle-spacer" }, this.canvas);
    this.items = html("div", { class: "visually-hidden", role: "none" });
    this.scroller = html(
      "div",
      {
        class: "icicle",
        id,
        tabindex: 0,
        role: "tree",
        "aria-label": label,
        "aria-describedby": "icicle-keys",
      },
      this.spacer,
      this.items,
    );
    this.element = this.scroller;
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no 2D canvas");
    this.context = context;
    this.colours = palette();
    onResize(this.scroller, (width) => {
      this.width = width;
      this.draw();
    });
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.pressed(event));
    this.scroller.addEventListener("focus", () => this.draw());
    this.scroller.addEventListener("blur", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(this.hit(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.clicked(event));
  }

  /** Show another tree, keeping the view where the same block is found in it. */
  show(tree: Block | null): void {
    const kept = this.focus ? names(this.focus) : [];
    const chosen = this.active ? names(this.active) : [];
    this.root = tree ? layOut(tree) : null;
    this.back = [];
    this.hover = null;
    this.warp = null;
    this.lastClick = null;
    this.focus = this.root && (find(this.root, kept) ?? this.root);
    this.active = this.root && chosen.length ? find(this.root, chosen) : null;
    this.hottest = 1e-12;
    let rows = 1;
    this.root?.each((node) => {
      if (node.data.kind === "line" || node.data.kind === "group") this.hottest = Math.max(this.hottest, node.data.own);
      rows = Math.max(rows, node.depth + 1);
    });
    this.scroller.style.setProperty("height", `${Math.max(LEAST_ROWS, Math.min(rows, MOST_ROWS)) * ROW + 1}px`);
    this.spacer.style.setProperty("height", `${rows * ROW}px`);
    this.search(this.query);
    this.motion = null;
    this.view = this.extent(this.focus);
    this.tell();
    this.draw();
    this.listener.zoomed();
  }

  /** Move the top blocks, as a preview has them. */
  bend(warp: Warp | null): void {
    this.warp = warp;
    if (!this.motion) this.view = this.extent(this.focus);
    this.draw();
  }

  /** Outline all blocks of a line: under the pointer in either icicle, or at the editor's cursor. */
  highlight(hoverKey: string | null, cursorKey: string | null): void {
    if (hoverKey === this.hoverKey && cursorKey === this.cursorKey) return;
    this.hoverKey = hoverKey;
    this.cursorKey = cursorKey;
    this.draw();
  }

  /** Dim what does not match. Returns how many lines or parameters match, and their share of the whole. */
  search(query: string): { blocks: number; share: number } {
    this.query = query.trim().toLowerCase();
    this.matches.clear();
    this.above.clear();
    let value = 0;
    if (this.query && this.root) {
      this.root.each((node) => {
        if (node.depth > 0 && node.data.searched.includes(this.query)) this.matches.add(node);
      });
      for (const match of this.matches) {
        let nested = false;
        for (let node = match.parent; node; node = node.parent) {
          nested ||= this.matches.has(node);
          this.above.add(node);
        }
        if (!nested) value += match.value ?? 0;
      }
    }
    this.draw();
    return { blocks: this.matches.size, share: this.root?.value ? value / this.root.value : 0 };
  }

  /** Choose the next match and bring it into view. */
  nextMatch(): Node | null {
    const all = [...this.matches];
    if (all.length === 0) return null;
    const next = all[(this.active ? all.indexOf(this.active) + 1 : 0) % all.length] ?? null;
    if (next) {
      this.choose(next);
      this.bringIntoView(next);
    }
    return next;
  }

  /** Fill the view with a block. */
  zoom(node: Node, remember = true): void {
    if (node === this.focus) return;
    if (remember && this.focus) this.back.push(this.focus);
    this.focus = node;
    this.glide(this.extent(node));
    this.scrollTo(node);
    this.listener.zoomed();
  }

  /** To the view before. Returns whether there was one. */
  goBack(): boolean {
    const before = this.back.pop() ?? (this.focus !== this.root ? this.root : null);
    if (!before) return false;
    this.zoom(before, false);
    return true;
  }

  /** Whether the view is not the whole. */
  get zoomedIn(): boolean {
    return this.focus !== this.root;
  }

  /** Choose a block: details are shown of it, keys start from it. */
  choose(node: Node): void {
    this.active = node;
    this.tell();
    this.draw();
    this.listener.chosen(node);
  }

  /** The middle of a block in the canvas, in CSS pixels; null where it is too thin or out of view. */
  middle(node: Node): { x: number; y: number; width: number } | null {
    const left = Math.max(0, this.position(node.x0));
    const right = Math.min(this.width, this.position(node.x1));
    if (right - left < THINNEST) return null;
    return { x: (left + right) / 2, y: (node.depth + 0.5) * ROW - this.scroller.scrollTop, width: right - left };
  }

  /** The colours have changed. */
  recolour(): void {
    this.colours = palette();
    this.draw();
  }

  /** Draw in the next frame. */
  draw(): void {
    if (!this.drawing) this.drawing = requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.drawing = 0;
    if (this.motion) {
      const share = Math.min(1, Math.max(0, (now - this.motion.start) / ZOOM_MS));
      const eased = 1 - (1 - share) ** 3;
      const { from, to } = this.motion;
      this.view = { x0: from.x0 + (to.x0 - from.x0) * eased, x1: from.x1 + (to.x1 - from.x1) * eased };
      if (share >= 1) this.motion = null;
      else this.draw();
    }
    this.paint();
  }

  private paint(): void {
    const { context } = this;
    const ratio = Math.min(3, devicePixelRatio || 1);
    this.height = this.scroller.clientHeight;
    const pixelWidth = Math.round(this.width * ratio);
    const pixelHeight = Math.round(this.height * ratio);
    if (this.canvas.width !== pixelWidth || this.canvas.height !== pixelHeight) {
      this.canvas.width = pixelWidth;
      this.canvas.height = pixelHeight;
      this.canvas.style.setProperty("width", `${this.width}px`);
      this.canvas.style.setProperty("height", `${this.height}px`);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, -this.scroller.scrollTop * ratio);
    context.clearRect(0, this.scroller.scrollTop, this.width, this.height);
    if (!this.root) return;
    context.font = getComputedStyle(this.scroller).font;
    context.textBaseline = "middle";
    this.characterWidth = context.measureText("0".repeat(50)).width / 50;
    const outlined: Node[] = [];
    // Right edge of the last sliver of each row: slivers side by side become one.
    const slivers: number[] = [];
    const pending: Node[] = [this.root];
    const first = Math.floor(this.scroller.scrollTop / ROW);
    const last = Math.ceil((this.scroller.scrollTop + this.height) / ROW);
    for (let node = pending.pop(); node; node = pending.pop()) {
      const left = this.position(node.x0);
      const right = this.position(node.x1);
      if (right <= 0 || left >= this.width || node.depth > last) continue;
      const thin = right - left < THINNEST;
      const key = node.data.key;
      if (node === this.active || node === this.hover || (key && (key === this.hoverKey || key === this.cursorKey))) {
        outlined.push(node);
      }
      if (thin) {
        const drawn = slivers[node.depth] ?? -1;
        if (left > drawn && node.depth >= first) {
          context.globalAlpha = this.dimmed(node) ? 0.3 : 1;
          context.fillStyle = this.colour(node);
          context.fillRect(left, node.depth * ROW, 1, ROW - 1);
          slivers[node.depth] = left + 1;
        } else if (node.depth >= first) {
          // Hidden behind a neighbour, and so is what it calls.
          continue;
        }
      } else if (node.depth >= first) this.paintBlock(node, Math.max(0, left), Math.min(this.width, right));
      const children = node.children;
      if (!children || node.depth + 1 > last) continue;
      // From the last child in view to the first, so that the first is drawn first.
      for (let index = this.firstBeyond(children) - 1; index >= 0; index--) {
        const child = children[index];
        if (!child || this.position(child.x1) <= 0) break;
        pending.push(child);
      }
    }
    context.globalAlpha = 1;
    for (const node of outlined) this.outline(node);
    if (this.query) this.markThinMatches();
  }

  private paintBlock(node: Node, left: number, right: number): void {
    const { context } = this;
    const top = node.depth * ROW;
    const width = right - left - (right - left > 3 ? 1 : 0);
    context.globalAlpha = this.dimmed(node) ? 0.3 : 1;
    context.fillStyle = this.colour(node);
    context.fillRect(left, top, width, ROW - 1);
    if (node.data.forward !== null && width > 8) {
      // The part of its time that is forward, as a line along its foot.
      context.fillStyle = this.colours.blockText;
      context.globalAlpha *= 0.45;
      context.fillRect(left, top + ROW - 3, width * node.data.forward, 2);
      context.globalAlpha = this.dimmed(node) ? 0.3 : 1;
    }
    const room = Math.floor((width - 2 * PADDING) / this.characterWidth);
    if (room < 3) return;
    const { place, name } = node.data;
    const label = place ? `${place} ${name}` : name;
    context.fillStyle = this.colours.blockText;
    const amount = room > 12 ? this.amount(node) : "";
    const free = amount && room > amount.length + 10 ? room - amount.length - 2 : room;
    const text = label.length <= free ? label : free > 6 ? `${label.slice(0, free - 1)}…` : "";
    const middle = top + ROW / 2 - 0.5;
    if (text) context.fillText(text, left + PADDING, middle);
    if (free < room) context.fillText(amount, left + width - PADDING - amount.length * this.characterWidth, middle);
  }

  private outline(node: Node): void {
    const { context, colours } = this;
    const left = Math.max(0, this.position(node.x0));
    const right = Math.min(this.width, Math.max(this.position(node.x1), left + 2));
    const top = node.depth * ROW;
    const width = right - left - (right - left > 3 ? 1 : 0);
    const key = node.data.key;
    const cursor = key !== null && key === this.cursorKey;
    const strong = node === this.active || cursor;
    context.lineWidth = strong ? 2 : 1.5;
    context.strokeStyle = cursor ? colours.accent : colours.blockText;
    const inset = context.lineWidth / 2;
    context.setLineDash(node === this.hover || strong ? [] : [3, 2]);
    context.strokeRect(left + inset, top + inset, Math.max(0.5, width - 2 * inset), ROW - 1 - 2 * inset);
    context.setLineDash([]);
    if (cursor && width > 10) {
      context.fillStyle = colours.accent;
      context.beginPath();
      context.moveTo(right - 1, top);
      context.lineTo(right - 9, top);
      context.lineTo(right - 1, top + 8);
      context.fill();
    }
  }

  /** A match that is too thin to see gets a tick, so that a search never looks as if it had found nothing. */
  private markThinMatches(): void {
    const { context, colours } = this;
    context.fillStyle = colours.accent;
    const marked = new Set<number>();
    for (const node of this.matches) {
      const left = this.position(node.x0);
      const right = this.position(node.x1);
      if (right - left >= 4 || right < 0 || left > this.width) continue;
      const spot = Math.round(left) + node.depth * 100_000;
      if (marked.has(spot)) continue;
      marked.add(spot);
      context.fillRect(left, node.depth * ROW, 2, ROW - 1);
    }
  }

  private colour(node: Node): string {
    const { kind, own } = node.data;
    if (kind === "untracked" || kind === "whole") return this.colours.neutral;
    if (kind === "class" && !node.children) return this.colours.neutral;
    return heated(this.colours.ramps[this.ramp], Math.sqrt(own / this.hottest));
  }

  private dimmed(node: Node): boolean {
    return this.query !== "" && !this.matches.has(node) && !this.above.has(node);
  }

  /** Where a position of the layout (0 to 1) is on the canvas, in pixels. */
  private position(x: number): number {
    return ((this.bent(x) - this.view.x0) / (this.view.x1 - this.view.x0)) * this.width;
  }

  private bent(x: number): number {
    const warp = this.warp;
    if (!warp) return x;
    const { from, to } = warp;
    let index = 1;
    while (index < from.length - 1 && x > (from[index] ?? 1)) index++;
    const a = from[index - 1] ?? 0;
    const b = from[index] ?? 1;
    const c = to[index - 1] ?? 0;
    const d = to[index] ?? 1;
    return b > a ? c + ((x - a) / (b - a)) * (d - c) : c;
  }

  private extent(node: Node | null): View {
    if (!node) return { x0: 0, x1: 1 };
    const view = { x0: this.bent(node.x0), x1: this.bent(node.x1) };
    return view.x1 > view.x0 ? view : { x0: view.x0, x1: view.x0 + 1e-9 };
  }

  private glide(to: View): void {
    if (calm()) {
      this.view = to;
      this.motion = null;
    } else {
      this.motion = { from: this.view, to, start: performance.now() };
    }
    this.draw();
  }

  /** Index of the first child that begins right of the view. */
  private firstBeyond(children: Node[]): number {
    let low = 0;
    let high = children.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.position(children[middle]?.x0 ?? 1) < this.width) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private hit(event: MouseEvent): Node | null {
    if (!this.root) return null;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const depth = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW);
    let node: Node = this.root;
    while (node.depth < depth) {
      const children: Node[] = node.children ?? [];
      let low = 0;
      let high = children.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.position(children[middle]?.x1 ?? 1) <= x) low = middle + 1;
        else high = middle;
      }
      const child = children[low];
      if (!child || this.position(child.x0) > x) return null;
      node = child;
    }
    return node;
  }

  private point(node: Node | null): void {
    if (node === this.hover) return;
    this.hover = node;
    this.canvas.style.setProperty("cursor", node ? "pointer" : "default");
    this.draw();
    this.listener.hovered(node);
  }

  private clicked(event: MouseEvent): void {
    const node = this.hit(event);
    if (!node) return;
    const twice = this.lastClick?.node === node && event.timeStamp - this.lastClick.time < TWICE_MS;
    this.lastClick = twice ? null : { node, time: event.timeStamp };
    this.choose(node);
    if (twice || this.isAboveView(node)) this.zoom(node);
    else if (node.data.path !== null) this.listener.opened(node);
  }

  /** Whether a block is an ancestor of what fills the view: there a click leads back. */
  private isAboveView(node: Node): boolean {
    for (let above = this.focus?.parent ?? null; above; above = above.parent) if (above === node) return true;
    return false;
  }

  private pressed(event: KeyboardEvent): void {
    if (!this.root) return;
    const at = this.active ?? this.focus ?? this.root;
    const siblings = at.parent?.children ?? [at];
    const index = siblings.indexOf(at);
    const to: Record<string, () => Node | null | undefined> = {
      ArrowLeft: () => siblings[index - 1],
      ArrowRight: () => siblings[index + 1],
      ArrowUp: () => at.parent,
      ArrowDown: () => largest(at.children),
      Home: () => this.root,
    };
    if (event.altKey) return;
    const move = to[event.key];
    if (move && !event.ctrlKey && !event.metaKey) {
      const next = this.active ? move() : at;
      if (next) {
        this.choose(next);
        this.bringIntoView(next);
      }
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      this.listener.opened(at);
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(at);
    } else if (event.key === "o") {
      this.listener.opened(at);
    } else if (event.key === "Backspace" || event.key === "Escape") {
      if (!this.goBack()) return;
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Zoom out or along until a block is wide enough to be seen, and scroll to its row. */
  private bringIntoView(node: Node): void {
    const view = this.extent(this.focus);
    const block = this.extent(node);
    const outside = block.x0 < view.x0 - 1e-12 || block.x1 > view.x1 + 1e-12;
    const width = ((block.x1 - block.x0) / (view.x1 - view.x0)) * this.width;
    if ((outside && node.depth > (this.focus?.depth ?? 0)) || width < 12) this.zoom(node.parent ?? node);
    else if (outside) this.zoom(node);
    this.scrollTo(node);
  }

  private scrollTo(node: Node): void {
    const top = node.depth * ROW;
    const visible = this.scroller.clientHeight;
    if (top - ROW < this.scroller.scrollTop || top + 2 * ROW > this.scroller.scrollTop + visible) {
      this.scroller.scrollTop = Math.max(0, top - 2 * ROW);
    }
  }

  /** Put the chosen block and its neighbours where assistive technology finds them. */
  private tell(): void {
    const node = this.active ?? this.focus;
    if (!node) {
      this.items.replaceChildren();
      this.scroller.removeAttribute("aria-activedescendant");
      return;
    }
    const near = [node.parent, node, largest(node.children)].filter((found): found is Node => Boolean(found));
    const elements = near.map((found) => {
      const siblings = found.parent?.children ?? [found];
      const item = html("div", {
        role: "treeitem",
        id: found === node ? `${this.id}-active` : null,
        "aria-level": found.depth + 1,
        "aria-setsize": siblings.length,
        "aria-posinset": siblings.indexOf(found) + 1,
        "aria-selected": found === node ? "true" : "false",
        "aria-expanded": found.children ? "true" : null,
      });
      setText(item, this.describe(found));
      return item;
    });
    this.items.replaceChildren(...elements);
    this.scroller.setAttribute("aria-activedescendant", `${this.id}-active`);
  }
}

function layOut(tree: Block): Node {
  const root = hierarchy(tree, (item) => item.children).sum((item) => item.own);
  return partition<Block>().size([1, root.height + 1])(root);
}

/** What tells a block from its siblings, from the root down. */
function names(node: Node): string[] {
  return node
    .ancestors()
    .reverse()
    .slice(1)
    .map((above) => above.data.key ?? above.data.name);
}

function find(root: Node, path: string[]): Node | null {
  let node: Node | undefined = root;
  for (const name of path) node = node?.children?.find((child) => (child.data.key ?? child.data.name) === name);
  return node ?? null;
}

function largest(children: Node[] | undefined): Node | undefined {
  return children?.reduce((best, child) => ((child.value ?? 0) > (best.value ?? 0) ? child : best));
}

// Colours for what is drawn on canvas, read from the style sheet; and the embedding editor's theme.

const MOST_VARIABLES = 64;
const NAME = /^--vscode-[\w-]{1,80}$/;

export interface Palette {
  surface: string;
  text: string;
  muted: string;
  blockText: string;
  rule: string;
  neutral: string;
  accent: string;
  ramps: Record<"time" | "memory", [Rgb, Rgb]>;
}

export type Rgb = [number, number, number];

let probe: HTMLElement | null = null;

/** The colours now in force. */
export function palette(): Palette {
  return {
    surface: resolve("--surface"),
    text: resolve("--text"),
    muted: resolve("--muted"),
    blockText: resolve("--block-text"),
    rule: resolve("--rule"),
    neutral: resolve("--block-neutral"),
    accent: resolve("--accent"),
    ramps: {
      time: [rgb(resolve("--time-cool")), rgb(resolve("--time-hot"))],
      memory: [rgb(resolve("--memory-cool")), rgb(resolve("--memory-hot"))],
    },
  };
}

/** A colour of the ramp, `heat` from 0 to 1. */
export function heated(ramp: [Rgb, Rgb], heat: number): string {
  const [cool, hot] = ramp;
  const at = Math.max(0, Math.min(1, heat));
  const mix = (index: 0 | 1 | 2) => Math.round(cool[index] + (hot[index] - cool[index]) * at);
  return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
}

/** Call `redraw` whenever colours may have changed. */
export function onTheme(redraw: () => void): void {
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", redraw);
  }
  addEventListener("message", (event: MessageEvent) => {
    // Only the page that embeds this one, and the server's frame-ancestors say which that can be.
    if (event.source !== parent || parent === window) return;
    if (adopt(event.data)) redraw();
  });
  const asked = /(?:^#|&)theme=(light|dark)/.exec(location.hash)?.[1];
  if (asked) document.documentElement.dataset["theme"] = asked;
}

/** Take over an editor's theme: `{type: "skyline.theme", kind: "light" | "dark", variables: {"--vscode-...": colour}}`. */
function adopt(data: unknown): boolean {
  if (typeof data !== "object" || data === null || !("type" in data) || data.type !== "skyline.theme") return false;
  const root = document.documentElement;
  if ("kind" in data && (data.kind === "light" || data.kind === "dark")) root.dataset["theme"] = data.kind;
  if ("variables" in data && typeof data.variables === "object" && data.variables !== null) {
    for (const [name, value] of Object.entries(data.variables).slice(0, MOST_VARIABLES)) {
      if (!NAME.test(name) || typeof value !== "string") continue;
      const property = name.endsWith("font-family") ? "font-family" : name.endsWith("font-size") ? "font-size" : "color";
      if (CSS.supports(property, value)) root.style.setProperty(name, value);
    }
  }
  return true;
}

function resolve(variable: string): string {
  if (!probe) {
    probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

function rgb(colour: string): Rgb {
  const [r = 128, g = 128, b = 128] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b];
}

// Small helpers to make elements. Text goes in as text only, never as markup.

type Attribute = string | number | boolean | null | undefined;
type Child = Node | string | null | undefined | false;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Record<string, Attribute>, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
}

/** An HTML element. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** A button of this text. */
export function button(text: string, className: string, pressed: () => void): HTMLButtonElement {
  const element = html("button", { type: "button", class: className }, text);
  element.addEventListener("click", pressed);
  return element;
}

/** Write a text, touching the document only where it changed: a screen reader reads changes out. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Whether the user has asked for less motion. */
export function calm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Call `draw` now and when the element's width changes. */
export function onResize(element: Element, draw: (width: number) => void): void {
  let last = -1;
  new ResizeObserver((entries) => {
    const width = Math.floor(entries[0]?.contentRect.width ?? 0);
    if (width !== last && width > 0) {
      last = width;
      draw(width);
    }
  }).observe(element);
}

/** Marks of cost: a bar in the gutter and a stroke in the overview ruler, the stronger the more of the iteration. */

import {
  commands,
  OverviewRulerLane,
  Range,
  Uri,
  window,
  workspace,
  type Disposable,
  type TextEditor,
  type TextEditorDecorationType,
} from "vscode";

import type { Cost } from "./protocol";
import type { Server } from "./server";

const DEBOUNCE_MS = 200;

/** From a share of the iteration on; the bar's width in the gutter, of 16, and its strength. */
const LEVELS = [
  { share: 0.25, width: 10, opacity: 1 },
  { share: 0.1, width: 8, opacity: 0.8 },
  { share: 0.05, width: 6, opacity: 0.6 },
  { share: 0.01, width: 3, opacity: 0.4 },
];
const COLORS = { light: "#bc4c00", dark: "#f0883e" };

export class Heat implements Disposable {
  private readonly levels: { share: number; type: TextEditorDecorationType }[] = LEVELS.map((level) => ({
    share: level.share,
    type: window.createTextEditorDecorationType({
      light: { gutterIconPath: bar(COLORS.light, level), overviewRulerColor: translucent(COLORS.light, level.opacity) },
      dark: { gutterIconPath: bar(COLORS.dark, level), overviewRulerColor: translucent(COLORS.dark, level.opacity) },
      gutterIconSize: "contain",
      overviewRulerLane: OverviewRulerLane.Left,
    }),
  }));
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly subscriptions: Disposable[];

  constructor(private readonly server: Server) {
    this.subscriptions = [
      server.onDidChange((uri) => this.schedule(uri)),
      window.onDidChangeVisibleTextEditors(() => this.schedule(undefined)),
      workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("skyline.heat")) {
          this.schedule(undefined);
        }
      }),
      commands.registerCommand("skyline.toggleHeat", () => {
        const settings = workspace.getConfiguration("skyline");
        return settings.update("heat.enabled", !settings.get("heat.enabled"), true);
      }),
    ];
  }

  dispose(): void {
    this.timers.forEach((timer) => clearTimeout(timer));
    this.levels.forEach((level) => level.type.dispose());
    this.subscriptions.forEach((item) => item.dispose());
  }

  private schedule(uri: Uri | undefined): void {
    for (const editor of window.visibleTextEditors) {
      const key = editor.document.uri.toString();
      if (editor.document.languageId === "python" && (uri === undefined || uri.toString() === key)) {
        clearTimeout(this.timers.get(key));
        this.timers.set(key, setTimeout(() => void this.draw(editor), DEBOUNCE_MS));
      }
    }
  }

  private async draw(editor: TextEditor): Promise<void> {
    const { uri, version } = editor.document;
    const costs = await this.costs(uri);
    if (editor.document.version !== version) {
      // The hints of the new text are asked for too, and bring this here again.
      return;
    }
    const rest = costs.filter((cost) => cost.line <= editor.document.lineCount);
    for (const { share, type } of this.levels) {
      const marked = rest.filter((cost) => cost.share >= share);
      marked.forEach((cost) => rest.splice(rest.indexOf(cost), 1));
      editor.setDecorations(
        type,
        marked.map((cost) => new Range(cost.line - 1, 0, cost.line - 1, 0)),
      );
    }
  }

  private async costs(uri: Uri): Promise<Cost[]> {
    const enabled = workspace.getConfiguration("skyline", uri).get("heat.enabled");
    if (!enabled || !this.server.isRunning || !this.server.offered.includes("skyline.costs")) {
      return [];
    }
    try {
      return (await this.server.ask<Cost[] | null>("skyline.costs", { uri: uri.toString() })) ?? [];
    } catch {
      // Decoration only: no cost is known, or the server is on its way out.
      return [];
    }
  }
}

function bar(color: string, level: { width: number; opacity: number }): Uri {
  const x = (16 - level.width) / 2;
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">` +
    `<rect x="${x}" y="1" width="${level.width}" height="14" rx="1.5" fill="${color}" fill-opacity="${level.opacity}"/></svg>`;
  return Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`);
}

function translucent(color: string, opacity: number): string {
  return color + Math.round(opacity * 255).toString(16).padStart(2, "0");
}

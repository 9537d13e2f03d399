/** The interactive panel beside the code: the server's loopback page inside a webview. */

import { randomBytes } from "node:crypto";
import { commands, Uri, ViewColumn, window, type Disposable, type WebviewPanel } from "vscode";

import { reachable } from "./address";
import { tell, type Server } from "./server";

export class Panel implements Disposable {
  private view: WebviewPanel | undefined;
  private readonly subscriptions: Disposable[];

  constructor(private readonly server: Server) {
    this.subscriptions = [
      commands.registerCommand("skyline.openPanel", () => this.open()),
      // A new server serves the page under a new address.
      server.onDidStartOrStop(() => {
        if (this.view && server.isRunning) {
          void this.load(this.view);
        }
      }),
    ];
  }

  dispose(): void {
    this.view?.dispose();
    this.subscriptions.forEach((item) => item.dispose());
  }

  private async open(): Promise<void> {
    if (this.view) {
      this.view.reveal(undefined, true);
      return;
    }
    const view = window.createWebviewPanel(
      "skyline.panel",
      "Skyline",
      { viewColumn: ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, retainContextWhenHidden: true },
    );
    this.view = view;
    view.onDidDispose(() => (this.view = undefined));
    if (!(await this.load(view))) {
      view.dispose();
    }
  }

  private async load(view: WebviewPanel): Promise<boolean> {
    const document = window.activeTextEditor?.document.uri ?? window.visibleTextEditors[0]?.document.uri;
    const argument = document?.scheme === "file" ? { uri: document.toString(), show: false } : { show: false };
    const panel = await tell(this.server.ask<{ url: string }>("skyline.openPanel", argument));
    if (!panel) {
      return false;
    }
    view.webview.html = page(await reachable(Uri.parse(panel.url)));
    return true;
  }
}

/** What the panel's style sheet takes from the editor's theme. */
const THEME = [
  "descriptionForeground",
  "editor-background",
  "editor-font-family",
  "editorWidget-background",
  "focusBorder",
  "font-family",
  "foreground",
  "panel-border",
  "textLink-foreground",
].map((name) => `--vscode-${name}`);

/** Nothing but a frame: what is in it comes from the server, and only that origin is let in. It gets the theme. */
function page(address: Uri): string {
  const origin = `${address.scheme}://${address.authority}`;
  const nonce = randomBytes(16).toString("base64");
  const policy = `default-src 'none'; frame-src ${origin}; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}';`;
  const source = address.toString(true).replace(/&/g, "&amp;").replace(/"/g, "&quot;");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Skyline</title>
<style nonce="${nonce}">
html, body, iframe { margin: 0; padding: 0; width: 100%; height: 100vh; border: 0; display: block; }
</style>
</head>
<body>
<iframe src="${source}" title="Skyline"></iframe>
<script nonce="${nonce}">
const frame = document.querySelector("iframe");
function sendTheme() {
  const style = getComputedStyle(document.documentElement);
  const variables = {};
  for (const name of ${JSON.stringify(THEME)}) {
    variables[name] = style.getPropertyValue(name).trim();
  }
  const dark = /vscode-(dark|high-contrast)(?!-light)/.test(document.body.className);
  frame.contentWindow.postMessage({ type: "skyline.theme", kind: dark ? "dark" : "light", variables }, "${origin}");
}
frame.addEventListener("load", sendTheme);
new MutationObserver(sendTheme).observe(document.body, { attributes: true, attributeFilter: ["class"] });
</script>
</body>
</html>`;
}

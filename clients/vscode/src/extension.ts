/** Starts the language server and puts its answers where VS Code has a place for them. */

import { workspace, type ExtensionContext } from "vscode";

import { registerCommands } from "./commands";
import { Heat } from "./heat";
import { onInterpreterChange } from "./interpreter";
import { Panel } from "./panel";
import { Server } from "./server";
import { StatusItems } from "./status";

export async function activate(context: ExtensionContext): Promise<void> {
  const server = new Server(context);
  context.subscriptions.push(server, new StatusItems(server), new Heat(server), new Panel(server));
  context.subscriptions.push(...registerCommands(server));
  context.subscriptions.push(
    workspace.onDidGrantWorkspaceTrust(() => server.restart()),
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("skyline.importStrategy") || event.affectsConfiguration("skyline.server")) {
        void server.restart();
      }
    }),
  );
  if (workspace.isTrusted) {
    const subscription = await onInterpreterChange(() => void server.restart());
    if (subscription) {
      context.subscriptions.push(subscription);
    }
  }
  void server.restart();
}

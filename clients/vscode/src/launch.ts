/** Which program is the server: one that the user names, one of the environment, or the one in this extension. */

import { existsSync, statSync } from "node:fs";
import * as path from "node:path";
import { workspace, type ExtensionContext } from "vscode";

/** How to start the server. */
export interface Launch {
  command: string;
  args: string[];
  /** Where it comes from, for the log. */
  reason: string;
}

const WINDOWS = process.platform === "win32";

/**
 * @param interpreter The selected one; it belongs to the workspace as a rule, so pass none while that is not trusted.
 * @returns undefined where there is neither a server nor a Python to run this extension's own.
 */
export function findServer(context: ExtensionContext, interpreter: string | undefined): Launch | undefined {
  const settings = workspace.getConfiguration("skyline");
  const named = settings.get<string | null>("server.path");
  if (named) {
    return { command: named, args: [], reason: "the setting skyline.server.path names it" };
  }
  if (settings.get<string>("importStrategy") !== "useBundled") {
    const beside = interpreter && sibling(interpreter, "skyline-lsp");
    if (beside) {
      return { command: beside, args: [], reason: "it is installed in the selected environment" };
    }
    const found = onPath("skyline-lsp");
    if (found) {
      return { command: found, args: [], reason: "it is on PATH" };
    }
  }
  const script = context.asAbsolutePath(path.join("bundled", "serve.py"));
  const python = interpreter ?? onPath("python3") ?? onPath("python");
  if (python && existsSync(script)) {
    return { command: python, args: [script], reason: "it comes with the extension" };
  }
  return undefined;
}

/** A program in the folder of another. */
function sibling(program: string, name: string): string | undefined {
  return executable(path.dirname(program), name);
}

function onPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter);
  // A relative entry would be looked up in the opened folder, whose programs may not be trusted.
  return folders.filter(path.isAbsolute).map((folder) => executable(folder, name)).find((found) => found);
}

function executable(folder: string, name: string): string | undefined {
  const file = path.join(folder, WINDOWS ? `${name}.exe` : name);
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? file : undefined;
}

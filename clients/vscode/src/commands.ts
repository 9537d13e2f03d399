/** The commands of the palette, of lenses, hints and code actions: what each asks of the user, then of the server. */

import * as path from "node:path";
import {
  commands,
  env,
  ProgressLocation,
  Range,
  Uri,
  window,
  workspace,
  type Disposable,
} from "vscode";

import { reachable } from "./address";
import { pickBatchSize } from "./batchSizePick";
import { memory, summary } from "./format";
import {
  isPrediction,
  type Choice,
  type Device,
  type Estimated,
  type Prediction,
  type Retuned,
  type Site,
  type Status,
} from "./protocol";
import { tell, type Server } from "./server";

/** The one argument of a server's command. */
interface Argument {
  uri?: string | undefined;
  batchSize?: number;
  choices?: Choice[];
  [name: string]: unknown;
}

type Handler = (argument: Argument) => Promise<unknown>;

/** Registers a handler for each of the server's commands, and this extension's own. */
export function registerCommands(server: Server): Disposable[] {
  const handlers: Record<string, Handler> = {
    "skyline.profile": (argument) => profile(server, argument),
    "skyline.predict": (argument) => predict(server, argument),
    "skyline.setBatchSize": (argument) => setBatchSize(server, argument),
    "skyline.retune": (argument) => retune(server, argument),
    "skyline.preview": (argument) => preview(server, argument),
    "skyline.estimate": (argument) => estimate(server, argument),
    "skyline.sites": (argument) => sites(server, argument),
    "skyline.chooseWorkload": (argument) => chooseWorkload(server, argument),
  };
  for (const name of ["cancel", "clear", "clearPreview", "status", "show"]) {
    handlers[`skyline.${name}`] = (argument) => tell(server.ask(`skyline.${name}`, argument));
  }
  const registered = Object.entries(handlers).map(([name, handler]) =>
    commands.registerCommand(name, (argument?: Argument) => handler({ ...here(), ...argument })),
  );
  return [
    ...registered,
    commands.registerCommand("skyline.actions", () => commands.executeCommand("workbench.action.quickOpen", ">Skyline: ")),
    commands.registerCommand("skyline.restart", () => server.restart()),
    commands.registerCommand("skyline.showLog", () => server.log.show()),
    commands.registerCommand("skyline.showTrace", () => server.trace.show()),
    commands.registerCommand("skyline.openPanelInBrowser", async () => {
      const panel = await tell(server.ask<{ url: string }>("skyline.openPanel", { ...here(), show: false }));
      if (panel) {
        await env.openExternal(await reachable(Uri.parse(panel.url)));
      }
    }),
    new Forwarding(server, new Set(Object.keys(handlers))),
  ];
}

/** Commands of a newer server, which this extension knows nothing of: they go to the server as they are. */
class Forwarding implements Disposable {
  private readonly added = new Map<string, Disposable>();
  private readonly subscription: Disposable;

  constructor(server: Server, known: ReadonlySet<string>) {
    // The panel is this extension's own view; the server would open a browser.
    const ours = new Set([...known, "skyline.openPanel"]);
    this.subscription = server.onDidStartOrStop(() => {
      for (const name of server.offered) {
        if (!ours.has(name) && !this.added.has(name)) {
          const forward = (argument?: Argument) => tell(server.ask(name, argument ?? {}));
          this.added.set(name, commands.registerCommand(name, forward));
        }
      }
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.added.forEach((item) => item.dispose());
  }
}

function here(): Argument {
  const document = window.activeTextEditor?.document;
  return document?.uri.scheme === "file" ? { uri: document.uri.toString() } : {};
}

async function profile(server: Server, argument: Argument): Promise<void> {
  if (!workspace.isTrusted) {
    const manage = "Manage Workspace Trust";
    const message = "Skyline: profiling runs this workspace's code. Trust the workspace first.";
    if ((await window.showWarningMessage(message, manage)) === manage) {
      await commands.executeCommand("workbench.trust.manage");
    }
    return;
  }
  await tell(server.ask("skyline.profile", argument));
}

async function predict(server: Server, argument: Argument): Promise<void> {
  const batchSize = argument.batchSize ?? (await pickBatchSize(server, argument.uri, "Predict a batch size"));
  if (batchSize === undefined) {
    return;
  }
  const asked = server.ask<Prediction>("skyline.predict", { ...argument, batchSize, show: false });
  const prediction = await whileShown("predicting", tell(asked));
  if (!isPrediction(prediction)) {
    return;
  }
  const set = `Set to ${batchSize}`;
  const problems = (prediction.problems ?? []).map((problem) => ` ${problem}`).join("");
  const message = `Batch size ${batchSize}: ${summary(prediction)}.${problems}`;
  if ((await window.showInformationMessage(message, set)) === set) {
    await apply(server, "skyline.setBatchSize", { uri: argument.uri, batchSize });
  }
}

async function setBatchSize(server: Server, argument: Argument): Promise<void> {
  const { choices, ...rest } = argument;
  let batchSize = argument.batchSize;
  if (batchSize === undefined && choices?.length) {
    const items = choices.map((choice) => ({ label: choice.title, batchSize: choice.batchSize }));
    const other = { label: "Another batch size...", batchSize: undefined };
    const picked = await window.showQuickPick([...items, other], { title: "Set the batch size" });
    if (!picked) {
      return;
    }
    batchSize = picked.batchSize;
  }
  batchSize ??= await pickBatchSize(server, argument.uri, "Set the batch size");
  if (batchSize !== undefined) {
    await apply(server, "skyline.setBatchSize", { ...rest, batchSize });
  }
}

async function retune(server: Server, argument: Argument): Promise<void> {
  if (argument["goal"] !== undefined) {
    await apply(server, "skyline.retune", argument);
    return;
  }
  const goals = [
    {
      label: "Throughput...",
      detail: "The smallest batch size that reaches so many samples a second",
      goal: "throughput",
      ask: "Samples a second, such as 250",
    },
    {
      label: "Peak memory...",
      detail: "The largest batch size that stays below it",
      goal: "memory",
      ask: "Peak memory, such as 6 GiB or 80 %",
    },
    { label: "Most throughput", detail: "The batch size past which throughput gains little", goal: "maxThroughput" },
    { label: "Largest that fits", detail: "In the memory of the device", goal: "fit" },
  ];
  const picked = await window.showQuickPick(goals, { title: "Retune for a goal" });
  if (!picked) {
    return;
  }
  let value: string | undefined;
  if (picked.ask) {
    value = await window.showInputBox({ title: picked.ask });
    if (!value) {
      return;
    }
  }
  await apply(server, "skyline.retune", { ...argument, goal: picked.goal, value });
}

/** Have the server edit the source, and say what it did; where the edit was not made, the server says so itself. */
async function apply(server: Server, command: string, argument: Argument): Promise<void> {
  const result = await whileShown("retuning", tell(server.ask<Retuned>(command, argument)));
  const edit = result?.edit ?? result;
  if (edit?.applied) {
    const reason = result?.edit && result.reason ? `: ${result.reason}` : "";
    window.setStatusBarMessage(`Skyline: batch size ${edit.old} -> ${edit.new}${reason}`, 8000);
  }
}

async function preview(server: Server, argument: Argument): Promise<void> {
  const batchSize = argument.batchSize ?? (await pickBatchSize(server, argument.uri, "Preview a batch size"));
  if (batchSize !== undefined) {
    await whileShown("predicting", tell(server.ask("skyline.preview", { ...argument, batchSize })));
  }
}

async function estimate(server: Server, argument: Argument): Promise<void> {
  const device = argument["device"] ?? (await pickDevice(server, argument));
  if (device === undefined) {
    return;
  }
  const asked = server.ask<Estimated>("skyline.estimate", { ...argument, device, show: false });
  const answer = await whileShown("estimating", tell(asked));
  if (answer) {
    void window.showInformationMessage(answer.text);
  }
}

/** One of the devices that the server knows, or what the user types: a name, or memory. */
async function pickDevice(server: Server, argument: Argument): Promise<string | undefined> {
  const devices = await tell(server.ask<Device[]>("skyline.devices", { uri: argument.uri }));
  if (!devices) {
    return undefined;
  }
  const items = devices.map((device) => ({
    label: device.device,
    description: memory(device.memoryBytes),
    detail: device.source,
    typed: false,
  }));
  const other = { label: "Another device...", description: "by its memory", detail: "", typed: true };
  const picked = await window.showQuickPick([...items, other], { title: "Would it fit which device?" });
  if (!picked?.typed) {
    return picked?.label;
  }
  return (await window.showInputBox({ title: "Memory of the device, such as 24GiB" })) || undefined;
}

async function sites(server: Server, argument: Argument): Promise<void> {
  const found = await tell(server.ask<Site[]>("skyline.sites", argument));
  if (!found) {
    return;
  }
  if (found.length === 0) {
    void window.showInformationMessage("Skyline: no place was found where the batch size is written.");
    return;
  }
  const items = found.map((site) => ({
    label: `${site.name} = ${site.value}`,
    description: `${workspace.asRelativePath(site.path)}:${site.line}`,
    detail: [site.editable ? "" : "not editable", site.reason ?? ""].filter(Boolean).join(": "),
    site,
  }));
  const picked = await window.showQuickPick(items, { title: "Where the batch size is written", matchOnDescription: true });
  if (picked) {
    const { line, column } = picked.site;
    const at = Math.max(0, column - 1);
    await window.showTextDocument(Uri.file(picked.site.path), { selection: new Range(line - 1, at, line - 1, at) });
  }
}

async function chooseWorkload(server: Server, argument: Argument): Promise<void> {
  if (argument["path"] !== undefined) {
    await tell(server.ask("skyline.chooseWorkload", argument));
    return;
  }
  const status = await tell(server.ask<Status>("skyline.status", argument));
  if (!status) {
    return;
  }
  const items = (status.programs ?? []).map((program) => ({
    label: program,
    description: program === status.workload?.path ? "profiled now" : "",
  }));
  if (items.length === 0) {
    void window.showInformationMessage("Skyline: nothing to profile was found in this workspace.");
    return;
  }
  const picked = await window.showQuickPick(items, { title: "What to profile" });
  if (picked) {
    const program = path.join(status.root, picked.label);
    await tell(server.ask("skyline.chooseWorkload", { path: program, uri: Uri.file(program).toString() }));
  }
}

/** The server reports the progress of what it runs; this covers the time before, so that a click shows at once. */
function whileShown<T>(what: string, work: Promise<T>): Thenable<T> {
  return window.withProgress({ location: ProgressLocation.Window, title: `Skyline: ${what}` }, () => work);
}


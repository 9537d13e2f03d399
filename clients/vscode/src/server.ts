/** The language server's life: started, restarted, stopped; what it is told of settings and trust. */

import {
  commands,
  EventEmitter,
  window,
  workspace,
  type Disposable,
  type ExtensionContext,
  type OutputChannel,
  type TextDocument,
  type Uri,
} from "vscode";
import {
  ExecuteCommandRequest,
  LanguageClient,
  RevealOutputChannelOn,
  type DynamicFeature,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";

import { embedders } from "./address";
import { selectedInterpreter } from "./interpreter";
import { findServer } from "./launch";

/** Files that hold training code, and those that hold its batch size. */
const SELECTOR = ["python", "yaml", "toml", "json"].map((language) => ({ scheme: "file", language }));

const SHOW_LOG = "Show the Log";

/** Leaves the server's commands to `commands.ts`, which adds what each needs from the user. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : undefined;
    if (method !== ExecuteCommandRequest.method) {
      super.registerFeature(feature);
    }
  }
}

/** How far the server is with something. */
export interface Progress {
  message?: string;
  percentage?: number;
}

/** Thrown where the server can't be asked; the message is for the user. */
export class NotRunning extends Error {}

export class Server implements Disposable {
  readonly log: OutputChannel = window.createOutputChannel("Skyline", "log");
  readonly trace: OutputChannel = window.createOutputChannel("Skyline Trace");

  private readonly shown = new EventEmitter<Uri | undefined>();
  private readonly progressed = new EventEmitter<Progress | undefined>();
  private readonly startedOrStopped = new EventEmitter<void>();
  /** What is shown of a file, or of any, may have changed. */
  readonly onDidChange = this.shown.event;
  /** How far a run is; undefined at its end. */
  readonly onDidProgress = this.progressed.event;
  readonly onDidStartOrStop = this.startedOrStopped.event;

  private client: Client | undefined;
  private interpreter: string | undefined;
  private problem: string | undefined;
  private changing: Promise<void> = Promise.resolve();

  constructor(private readonly context: ExtensionContext) {}

  /** Why the server is not running; undefined where it is, or is about to. */
  get failure(): string | undefined {
    return this.problem;
  }

  get isRunning(): boolean {
    return this.client?.isRunning() ?? false;
  }

  /** The server's commands; older servers have fewer. */
  get offered(): readonly string[] {
    return this.client?.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
  }

  /** Start, in place of what runs. One at a time: a second call waits for the first. */
  restart(): Promise<void> {
    this.changing = this.changing.then(async () => {
      await this.stop();
      await this.start();
    });
    return this.changing;
  }

  /** @throws NotRunning, or the server's own refusal. */
  async ask<T>(command: string, argument: object): Promise<T> {
    if (!this.client?.isRunning()) {
      throw new NotRunning(this.problem ?? "The server is not running.");
    }
    if (!this.offered.includes(command)) {
      throw new NotRunning(`This version of skyline-lsp has no ${command}; upgrade it.`);
    }
    return this.client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] }) as Promise<T>;
  }

  dispose(): void {
    void this.stop();
    for (const item of [this.log, this.trace, this.shown, this.progressed, this.startedOrStopped]) {
      item.dispose();
    }
  }

  private async start(): Promise<void> {
    // An interpreter of the workspace is a program of the workspace.
    this.interpreter = workspace.isTrusted ? await selectedInterpreter() : undefined;
    const launch = findServer(this.context, this.interpreter);
    if (!launch) {
      this.problem = "skyline-lsp was not found, nor a Python to run the one in this extension. Select an interpreter.";
      this.startedOrStopped.fire();
      return;
    }
    this.problem = undefined;
    this.log.appendLine(`Starting ${[launch.command, ...launch.args].join(" ")}: ${launch.reason}`);
    const run = {
      command: launch.command,
      args: launch.args,
      // Never the opened folder: Python would import modules from it.
      options: { cwd: this.context.extensionPath },
    };
    const client = new Client("skyline", "Skyline", { run, debug: run }, await this.options());
    this.client = client;
    client.onDidChangeState(() => this.startedOrStopped.fire());
    try {
      await client.start();
    } catch (error) {
      this.problem = `The server did not start: ${error instanceof Error ? error.message : String(error)}`;
      this.client = undefined;
    }
    this.startedOrStopped.fire();
    this.shown.fire(undefined);
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.progressed.fire(undefined);
    try {
      await client?.dispose();
    } catch (error) {
      // It is gone already, or does not answer; a new one starts in its place either way.
      this.log.appendLine(`The server did not stop in order: ${String(error)}`);
    }
  }

  private async options(): Promise<LanguageClientOptions> {
    const told = { trusted: workspace.isTrusted, panelEmbedders: await embedders() };
    return {
      documentSelector: SELECTOR,
      initializationOptions: { ...this.settings(undefined), ...told },
      outputChannel: this.log,
      traceOutputChannel: this.trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        workspace: {
          configuration: (params) =>
            params.items.map((item) => {
              const scope = item.scopeUri ? this.client?.protocol2CodeConverter.asUri(item.scopeUri) : undefined;
              return item.section === "skyline" ? this.settings(scope) : null;
            }),
          // The server asks for what it wants to know.
          didChangeConfiguration: (_sections, next) => next(undefined),
        },
        handleDiagnostics: (uri, diagnostics, next) => {
          next(uri, diagnostics);
          this.shown.fire(uri);
        },
        provideInlayHints: (document: TextDocument, range, token, next) => {
          this.shown.fire(document.uri);
          return next(document, range, token);
        },
        handleWorkDoneProgress: (token, params, next) => {
          next(token, params);
          this.progressed.fire(params.kind === "end" ? undefined : progress(params));
        },
      },
    };
  }

  /**
   * What the user has set, defaults left out: they would outweigh the project's pyproject.toml.
   *
   * `get` honours restricted mode where `inspect` does not, so it is the one that gives the values.
   */
  private settings(scope: Uri | undefined): Record<string, unknown> {
    const configuration = workspace.getConfiguration("skyline", scope);
    const properties = this.context.extension.packageJSON.contributes.configuration.properties as object;
    const set: Record<string, unknown> = {};
    for (const key of Object.keys(properties).map((name) => name.slice("skyline.".length))) {
      const found = configuration.inspect(key);
      const given = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
      if (given !== undefined) {
        set[key] = configuration.get(key);
      }
    }
    if (this.interpreter && set["python"] === undefined) {
      set["python"] = this.interpreter;
    }
    return set;
  }
}

function progress(params: { message?: string; percentage?: number }): Progress {
  return {
    ...(params.message === undefined ? {} : { message: params.message }),
    ...(params.percentage === undefined ? {} : { percentage: params.percentage }),
  };
}

/** Ask, and show the user why where it fails. */
export async function tell<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const buttons = error instanceof NotRunning ? [SHOW_LOG] : [];
    void window.showErrorMessage(`Skyline: ${message}`, ...buttons).then((pressed) => {
      if (pressed === SHOW_LOG) {
        void commands.executeCommand("skyline.showLog");
      }
    });
    return undefined;
  }
}

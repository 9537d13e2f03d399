/** What the server is at, in the status bar and in the language status. */

import {
  commands,
  languages,
  LanguageStatusSeverity,
  StatusBarAlignment,
  ThemeColor,
  window,
  workspace,
  type Disposable,
} from "vscode";

import { memory, milliseconds, throughput } from "./format";
import type { Status } from "./protocol";
import type { Progress, Server } from "./server";

const DEBOUNCE_MS = 200;

/** What is shown at a moment. */
interface Shown {
  icon: string;
  text: string;
  detail: string;
  severity: LanguageStatusSeverity;
  command: { command: string; title: string };
  busy?: boolean;
}

const ACTIONS = { command: "skyline.actions", title: "Actions" };
const PROFILE = { command: "skyline.profile", title: "Profile" };

export class StatusItems implements Disposable {
  private readonly bar = window.createStatusBarItem("skyline.status", StatusBarAlignment.Right, 100);
  private readonly language = languages.createLanguageStatusItem("skyline.status", { language: "python", scheme: "file" });
  private readonly subscriptions: Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private progress: Progress | undefined;

  constructor(private readonly server: Server) {
    this.bar.name = "Skyline";
    this.language.name = "Skyline";
    this.subscriptions = [
      server.onDidProgress((progress) => {
        this.progress = progress;
        if (progress) {
          this.show(running(progress));
        } else {
          this.schedule();
        }
      }),
      server.onDidChange(() => this.schedule()),
      server.onDidStartOrStop(() => this.schedule()),
      window.onDidChangeActiveTextEditor(() => this.schedule()),
      workspace.onDidGrantWorkspaceTrust(() => this.schedule()),
    ];
    this.schedule();
  }

  dispose(): void {
    clearTimeout(this.timer);
    [this.bar, this.language, ...this.subscriptions].forEach((item) => item.dispose());
  }

  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.update(), DEBOUNCE_MS);
  }

  private async update(): Promise<void> {
    if (this.progress) {
      return;
    }
    const document = window.activeTextEditor?.document;
    if (document && document.languageId !== "python") {
      this.bar.hide();
      return;
    }
    if (this.server.failure !== undefined) {
      this.show(broken(this.server.failure));
      return;
    }
    if (!this.server.isRunning) {
      this.show(starting());
      return;
    }
    const uri = document?.uri.scheme === "file" ? document.uri.toString() : undefined;
    let status: Status | undefined;
    try {
      status = await this.server.ask<Status>("skyline.status", { uri });
    } catch (error) {
      this.show(broken(error instanceof Error ? error.message : String(error)));
      return;
    }
    void commands.executeCommand("setContext", "skyline.profiled", Boolean(status.profile));
    if (!this.progress) {
      this.show(shown(status));
    }
  }

  private show(shown: Shown): void {
    this.bar.text = `$(${shown.icon}) ${shown.text}`;
    this.bar.tooltip = `Skyline: ${shown.detail}`;
    this.bar.command = shown.command.command === "skyline.profile" ? ACTIONS.command : shown.command.command;
    const failed = shown.severity === LanguageStatusSeverity.Error;
    this.bar.backgroundColor = failed ? new ThemeColor("statusBarItem.errorBackground") : undefined;
    this.bar.show();
    this.language.text = shown.text;
    this.language.detail = shown.detail;
    this.language.severity = shown.severity;
    this.language.busy = shown.busy ?? false;
    this.language.command = shown.command;
  }
}

function running(progress: Progress): Shown {
  const percentage = progress.percentage === undefined ? "" : `${progress.percentage} % `;
  return {
    icon: "sync~spin",
    text: `${percentage}${progress.message ?? "profiling"}`,
    detail: "profiling; click to cancel",
    severity: LanguageStatusSeverity.Information,
    command: { command: "skyline.cancel", title: "Cancel" },
    busy: true,
  };
}

function starting(): Shown {
  const severity = LanguageStatusSeverity.Information;
  return { icon: "sync~spin", text: "Skyline", detail: "starting", severity, command: ACTIONS, busy: true };
}

function broken(message: string): Shown {
  const command = { command: "skyline.restart", title: "Restart" };
  return { icon: "error", text: "Skyline", detail: message, severity: LanguageStatusSeverity.Error, command };
}

function shown(status: Status): Shown {
  const profile = status.profile;
  const figures = profile
    ? [
        milliseconds(profile.runTimeMs),
        ...(profile.samplesPerSecond === null ? [] : [throughput(profile.samplesPerSecond)]),
        memory(profile.peakBytes),
      ]
    : [];
  const severity = LanguageStatusSeverity.Information;
  switch (status.state) {
    case "idle":
      if (!workspace.isTrusted) {
        const command = { command: "workbench.trust.manage", title: "Manage trust" };
        return { icon: "shield", text: "Skyline", detail: "trust the workspace to profile it", severity, command };
      }
      return { icon: "flame", text: "Skyline", detail: "not profiled yet", severity, command: PROFILE };
    case "running":
      return running({ message: status.progress ?? "profiling" });
    case "ready":
      return { icon: "flame", text: figures.slice(0, 2).join(" "), detail: figures.join(", "), severity, command: PROFILE };
    case "stale": {
      const detail = `${figures.join(", ")}; the source has changed since`;
      return { icon: "history", text: figures.slice(0, 2).join(" "), detail, severity, command: PROFILE };
    }
    case "failed": {
      const detail = status.failure?.message ?? "profiling failed";
      return { icon: "error", text: "Skyline: failed", detail, severity: LanguageStatusSeverity.Error, command: PROFILE };
    }
  }
}

/** A quick pick that says, while a batch size is typed, what it is predicted to do. */

import { window, type QuickPickItem } from "vscode";

import { intervals, parseBatchSize, summary } from "./format";
import { isPrediction, type NothingKnown, type Prediction, type Status } from "./protocol";
import type { Server } from "./server";

const DEBOUNCE_MS = 150;

interface Item extends QuickPickItem {
  batchSize: number;
}

/** @returns undefined where the user thinks better of it. */
export async function pickBatchSize(server: Server, uri: string | undefined, title: string): Promise<number | undefined> {
  const pick = window.createQuickPick<Item>();
  pick.title = title;
  pick.placeholder = "Type a batch size to see what it is predicted to do";
  pick.matchOnDescription = false;

  let typed = 0;
  const show = async (sizes: number[], current: number | undefined): Promise<void> => {
    const turn = ++typed;
    const named = sizes.map((size) => plain(size, current));
    pick.items = named;
    pick.busy = true;
    for (const [index, size] of sizes.entries()) {
      const prediction = await knownPrediction(server, uri, size);
      if (turn !== typed) {
        return;
      }
      const known = prediction && { description: summary(prediction), detail: intervals(prediction) };
      named[index] = { ...plain(size, current), ...(known ?? { description: "no prediction yet" }) };
      pick.items = [...named];
    }
    pick.busy = false;
  };

  let timer: NodeJS.Timeout | undefined;
  return new Promise((resolve) => {
    let current: number | undefined;
    const suggest = () => void show(suggestions(current), current);
    pick.onDidChangeValue((value) => {
      clearTimeout(timer);
      const size = parseBatchSize(value);
      if (size === undefined) {
        suggest();
        return;
      }
      typed++;
      pick.items = [plain(size, current)];
      timer = setTimeout(() => void show([size], current), DEBOUNCE_MS);
    });
    pick.onDidAccept(() => {
      resolve(pick.selectedItems[0]?.batchSize ?? parseBatchSize(pick.value));
      pick.hide();
    });
    pick.onDidHide(() => {
      clearTimeout(timer);
      typed++;
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
    void server.ask<Status>("skyline.status", { uri }).then(
      (status) => {
        current = status.batchSize ?? undefined;
        if (pick.value === "") {
          suggest();
        }
      },
      suggest,
    );
  });
}

/** What is known without running anything. */
async function knownPrediction(server: Server, uri: string | undefined, batchSize: number): Promise<Prediction | undefined> {
  // A server older than `measure` would run the program for each digit typed. It has no previews either.
  if (!server.offered.includes("skyline.preview")) {
    return undefined;
  }
  try {
    const answer = await server.ask<Prediction | NothingKnown>("skyline.predict", { uri, batchSize, measure: false });
    return isPrediction(answer) ? answer : undefined;
  } catch {
    // The size can be picked even so; what is wrong is said when it is used.
    return undefined;
  }
}

function plain(batchSize: number, current: number | undefined): Item {
  const label = batchSize === current ? `${batchSize} (now)` : String(batchSize);
  return { label, batchSize, alwaysShow: true };
}

/** The present one, its halves and doubles. */
function suggestions(current: number | undefined): number[] {
  const middle = current ?? 16;
  const sizes = [middle / 4, middle / 2, middle, middle * 2, middle * 4].map(Math.floor);
  return [...new Set(sizes.filter((size) => size >= 1))];
}

// Opens VS Code's workbench in a real Chromium, trusts the workspace by its own page, waits for the probe to be done,
// and writes what is on the screen, as JSON, to $SKYLINE_RESULT.screen.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(path.join(process.env.SKYLINE_VSCODE, "package.json"));
const { chromium } = require("playwright-core");

// A limit for what went wrong; a busy machine takes minutes for a run.
const LIMIT_MS = 240_000;
const RESULT = process.env.SKYLINE_RESULT;
const SCREENSHOTS = process.env.SKYLINE_SCREENSHOTS;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(LIMIT_MS);
const screen = {};
try {
  await page.goto(process.env.SKYLINE_URL);
  await page.waitForSelector(".monaco-workbench");
  await file(`${RESULT}.untrusted`);
  screen.untrustedStatus = await waitForStatus(/not trusted|Skyline/);
  screen.untrustedQuestion = await page.locator(".notification-list-item", { hasText: "Trust the workspace" }).first().innerText();
  await picture("untrusted");

  await command("Workspaces: Manage Workspace Trust");
  await page.locator(".workspace-trust-editor .workspace-trust-buttons-row a", { hasText: /^Trust$/ }).first().click();
  await file(RESULT);

  await quickOpen("providers.py");
  await page.locator(".codelens-decoration a", { hasText: "profile again" }).waitFor();
  screen.lenses = await page.locator(".codelens-decoration a").allInnerTexts();
  screen.status = await waitForStatus(/ms|s\/iteration| s /);
  await quickOpen("resnet.py");
  await page.keyboard.press("Control+End");
  await page.locator(".view-line", { hasText: "fwd" }).first().waitFor();
  screen.lines = await page.locator(".view-line").allInnerTexts();
  await page.locator(".glyph-margin-widgets .cgmr[style*=data], .glyph-margin-widgets .cgmr").first().waitFor();
  screen.marks = await page.locator(".glyph-margin-widgets .cgmr").evaluateAll((marks) =>
    marks.map((mark) => getComputedStyle(mark).backgroundImage).filter((image) => image.includes("svg")),
  );
  await picture("costs");

  await quickOpen("providers.py");
  await typeBatchSize("5");
  await page.keyboard.press("Enter");
  // On a busy machine the measured times may be too noisy to predict from; the server then says so.
  const told = page.locator(".notification-list-item", { hasText: /Batch size 5: |predict/ }).first();
  await told.waitFor();
  screen.prediction = await told.innerText();
  await command("Notifications: Clear All Notifications");
  screen.pick = await typeBatchSize("6");
  await picture("predict");
  await page.keyboard.press("Escape");

  await command("Skyline: Open the Panel");
  screen.panel = await panelText(/samples\/s/);
  await picture("panel");
} catch (error) {
  screen.error = String(error.stack ?? error);
  await picture("failure");
} finally {
  fs.writeFileSync(`${RESULT}.screen`, JSON.stringify(screen));
  await browser.close();
}

/** Wait until a file is there. */
async function file(name) {
  const until = Date.now() + LIMIT_MS;
  while (!fs.existsSync(name)) {
    if (Date.now() > until) {
      throw new Error(`waited in vain for ${name}`);
    }
    await page.waitForTimeout(100);
  }
}

async function command(title) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").first().fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
}

async function quickOpen(name) {
  await page.keyboard.press("Control+p");
  await page.locator(".quick-input-widget input").first().fill(name);
  // Not Enter: until the list is filtered, its first row is another file.
  await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
  await page.locator(".tab.active", { hasText: name }).waitFor();
}

/** What the extension's item in the status bar says, once it says something like that. */
async function waitForStatus(wanted) {
  const item = page.locator("[id='skyline-lsp.skyline-lsp.skyline.status']", { hasText: wanted });
  await item.waitFor();
  return item.innerText();
}

/** Type a batch size into the extension's quick pick; returns what it says of it. */
async function typeBatchSize(size) {
  await command("Skyline: Predict a Batch Size...");
  await page.locator(".quick-input-widget", { hasText: "Predict a batch size" }).locator("input").first().fill(size);
  const row = page.locator(".quick-input-list .monaco-list-row", { hasText: new RegExp(`^${size}`) });
  // The row is drawn anew when the prediction comes: one text, not one look for it and another at it.
  const until = Date.now() + LIMIT_MS;
  for (;;) {
    const text = await row.first().innerText();
    if (/samples\/s|yet/.test(text)) {
      return text;
    }
    if (Date.now() > until) {
      throw new Error(`the quick pick says nothing of ${size}: ${text}`);
    }
    await page.waitForTimeout(50);
  }
}

/** What the panel's page, some frames deep, shows, once it shows something like that. */
async function panelText(wanted) {
  const until = Date.now() + LIMIT_MS;
  for (;;) {
    for (const frame of page.frames().filter((one) => /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{20,}\//.test(one.url()))) {
      const text = await frame.locator("body").innerText();
      if (wanted.test(text)) {
        return text;
      }
    }
    if (Date.now() > until) {
      throw new Error(`the panel does not show ${wanted}; frames: ${page.frames().map((one) => one.url()).join(", ")}`);
    }
    await page.waitForTimeout(200);
  }
}

async function picture(name) {
  if (SCREENSHOTS) {
    await page.screenshot({ path: path.join(SCREENSHOTS, `${name}.png`) });
  }
}

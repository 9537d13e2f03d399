// Drives VS Code through the main job from within the extension host, and writes what it holds, as JSON, to
// $SKYLINE_RESULT. Lines in the result count from 1. `$SKYLINE_RESULT.untrusted` says that the workspace can be trusted
// now; drive.mjs, which has the screen, does that.
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const LIMIT_MS = 240_000;
const RESULT = process.env.SKYLINE_RESULT;

exports.activate = () => {
  main().then(
    (result) => write(RESULT, result),
    (error) => write(RESULT, { error: String(error.stack ?? error) }),
  );
};

function write(file, value) {
  fs.writeFileSync(`${file}.part`, JSON.stringify(value));
  fs.renameSync(`${file}.part`, file);
}

async function main() {
  const result = { hints: {} };
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const editor = await vscode.window.showTextDocument(vscode.Uri.file(path.join(folder, "providers.py")));
  const { document } = editor;

  result.trustedAtFirst = vscode.workspace.isTrusted;
  result.untrustedLenses = await waitFor("lenses in restricted mode", () => lenses(document, "batch size 8"));
  // The answer is a question to the user, which stays open; nothing may have been run.
  void vscode.commands.executeCommand("skyline.profile");
  write(`${RESULT}.untrusted`, {});
  await waitFor("trust", () => vscode.workspace.isTrusted);

  // The server is started anew; ask until it is there.
  await waitFor("the lens before a run", () => lenses(document, "Profile this training step"));
  await vscode.commands.executeCommand("skyline.profile");
  result.diagnostics = await waitFor("the summary", () => {
    const found = vscode.languages.getDiagnostics(document.uri).filter((item) => item.source === "skyline");
    return found.length > 0 && found.map((item) => ({ line: item.range.start.line + 1, message: item.message }));
  });
  result.lenses = await waitFor("lenses", () => lenses(document, "profile again"));
  result.hints["providers.py"] = await waitFor("hints", () => hints(document));

  const model = await vscode.workspace.openTextDocument(path.join(folder, "resnet.py"));
  result.hints["resnet.py"] = await waitFor("hints of the model", () => hints(model));
  const line = [...Array(model.lineCount).keys()].find((at) => model.lineAt(at).text.includes("x = self.stage5(x)"));
  const [hover] = await vscode.commands.executeCommand(
    "vscode.executeHoverProvider",
    model.uri,
    new vscode.Position(line, 10),
  );
  result.hover = hover.contents.map((content) => content.value ?? content).join("\n");

  const before = document.getText();
  const changed = () => document.getText() !== before;
  const unchanged = () => document.getText() === before;
  await vscode.commands.executeCommand("skyline.setBatchSize", { uri: document.uri.toString(), batchSize: 4 });
  await waitFor("the retuned text", changed);
  result.after = document.getText();
  await undo(document);
  await waitFor("the text after undo", unchanged);
  result.undone = document.getText();

  const at = document.getText().slice(0, document.getText().indexOf("batch_size: int = 8")).split("\n").length - 1;
  const action = await waitFor("the code action", async () => {
    const range = document.lineAt(at).range;
    const found = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", document.uri, range);
    return found.find((item) => item.title.startsWith("Set batch size to 4"));
  });
  await vscode.workspace.applyEdit(action.edit);
  result.after_action = document.getText();
  await undo(document);
  await waitFor("the text after another undo", unchanged);
  result.undone_action = document.getText();
  return result;
}

async function undo(document) {
  await vscode.window.showTextDocument(document);
  await vscode.commands.executeCommand("undo");
}

async function lenses(document, wanted) {
  const found = (await vscode.commands.executeCommand("vscode.executeCodeLensProvider", document.uri, 100)) ?? [];
  const shown = found.map((lens) => ({ line: lens.range.start.line + 1, text: lens.command?.title ?? "" }));
  return shown.some((lens) => lens.text.includes(wanted)) && shown;
}

async function hints(document) {
  const range = new vscode.Range(0, 0, document.lineCount, 0);
  const found = (await vscode.commands.executeCommand("vscode.executeInlayHintProvider", document.uri, range)) ?? [];
  const shown = found.map((hint) => ({
    line: hint.position.line + 1,
    text: typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join(""),
  }));
  return shown.length > 0 && shown;
}

async function waitFor(what, value) {
  const until = Date.now() + LIMIT_MS;
  for (;;) {
    const found = await value();
    if (found) {
      return found;
    }
    if (Date.now() > until) {
      throw new Error(`waited in vain for ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

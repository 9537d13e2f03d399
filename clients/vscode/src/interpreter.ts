/** The interpreter that the user selected in the Python extension, where that is installed. */

import { extensions, workspace, type Disposable, type Event, type Uri } from "vscode";

/** The part of the Python extension's API that is used here. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: Event<unknown>;
  };
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = extensions.getExtension<PythonApi>("ms-python.python");
  const api = extension?.isActive ? extension.exports : await extension?.activate();
  return api?.environments ? api : undefined;
}

/** Absolute path of the selected interpreter; undefined without the Python extension or a selection. */
export async function selectedInterpreter(): Promise<string | undefined> {
  const api = await pythonApi();
  if (!api) {
    return undefined;
  }
  const folder = workspace.workspaceFolders?.[0]?.uri;
  const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}

export async function onInterpreterChange(listener: () => void): Promise<Disposable | undefined> {
  return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(listener);
}

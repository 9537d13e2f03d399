// The part of the Python extension's interface that tells the selected interpreter; it is $SKYLINE_SELECTED_PYTHON.
const vscode = require("vscode");

exports.activate = () => {
  const changed = new vscode.EventEmitter();
  const python = process.env.SKYLINE_SELECTED_PYTHON;
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: python, path: python }),
      resolveEnvironment: async (environment) => ({
        id: environment.path,
        path: environment.path,
        executable: { uri: vscode.Uri.file(environment.path) },
      }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};

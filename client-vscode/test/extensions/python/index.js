// Stands for Microsoft's extension of this name: what is asked of it, and `choose` for a test.
const { EventEmitter, Uri } = require("vscode");

exports.activate = () => {
  let chosen;
  const changed = new EventEmitter();
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ path: chosen }),
      resolveEnvironment: async ({ path }) => (path === undefined ? undefined : { executable: { uri: Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
    choose(path) {
      chosen = path;
      changed.fire({ path });
    },
  };
};

// Stands for Microsoft's extension of this name: what is asked of it, and `choose` for a test.
const { EventEmitter } = require("vscode");

exports.activate = () => {
  let chosen;
  const changed = new EventEmitter();
  return {
    getEnvironment: async () => (chosen === undefined ? undefined : { execInfo: { run: { executable: chosen } } }),
    onDidChangeEnvironment: changed.event,
    choose(path) {
      chosen = path;
      changed.fire({});
    },
  };
};

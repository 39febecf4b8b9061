/** The Python that the user chose in another extension; nothing here needs one of them. */
import { extensions, type Disposable, type Event, type Uri } from "vscode";

interface PythonEnvironments {
  getEnvironment(scope: Uri | undefined): Promise<{ readonly execInfo?: { readonly run?: { readonly executable?: string } } } | undefined>;
  readonly onDidChangeEnvironment?: Event<unknown>;
}

interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: Uri): { readonly path: string };
    resolveEnvironment(path: unknown): Promise<{ readonly executable: { readonly uri?: Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath?: Event<unknown>;
  };
}

/** How each extension is asked, first the one that is preferred. */
const ASKED: readonly { readonly id: string; readonly ask: (api: unknown, folder?: Uri) => Promise<string | undefined> }[] = [
  {
    id: "ms-python.vscode-python-envs",
    ask: async (api, folder) => (await (api as PythonEnvironments).getEnvironment(folder))?.execInfo?.run?.executable,
  },
  {
    id: "ms-python.python",
    ask: async (api, folder) => {
      const environments = (api as PythonExtension).environments;
      const chosen = environments?.getActiveEnvironmentPath(folder);
      return (await environments?.resolveEnvironment(chosen))?.executable.uri?.fsPath;
    },
  },
];
const MOST_MILLISECONDS = 10_000;

/** The Pythons chosen for the opened folder, by extension; one that is missing, fails or takes long is left out. */
export async function chosenElsewhere(folder: Uri | undefined): Promise<string[]> {
  const found: string[] = [];
  for (const { id, ask } of ASKED) {
    const extension = extensions.getExtension<unknown>(id);
    if (extension === undefined) {
      continue;
    }
    const asked = Promise.resolve(extension.activate()).then((api) => ask(api, folder));
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, MOST_MILLISECONDS, undefined).unref());
    const chosen = await Promise.race([asked, late]).catch(() => undefined);
    if (chosen) {
      found.push(chosen);
    }
  }
  return found;
}

/**
 * Call back where the user chooses another Python there. Nobody says when an extension becomes active: `listen` again after
 * they were asked.
 */
export function onChosenElsewhere(listener: () => void): Disposable & { listen(): void } {
  const heard = new Map<string, Disposable>();
  const listen = (): void => {
    for (const { id } of ASKED) {
      const extension = extensions.getExtension<PythonEnvironments & PythonExtension>(id);
      if (extension?.isActive && !heard.has(id)) {
        const event = extension.exports?.onDidChangeEnvironment ?? extension.exports?.environments?.onDidChangeActiveEnvironmentPath;
        if (event !== undefined) {
          heard.set(id, event(listener));
        }
      }
    }
  };
  return { listen, dispose: () => heard.forEach((each) => each.dispose()) };
}

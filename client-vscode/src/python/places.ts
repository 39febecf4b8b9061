/** Where a Python may be on this machine: names on the path, environments, what a user writes in a setting. */
import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, posix, relative, win32 } from "node:path";
import type { Command } from "../processes";
import { NEWEST, OLDEST } from "./probe";

/** What the path may call Python, in the order in which it is tried. */
export function onThePath(platform: NodeJS.Platform = process.platform): Command[] {
  if (platform === "win32") {
    return [
      { program: "py", arguments: ["-3"] },
      { program: "python", arguments: [] },
    ];
  }
  const versions: string[] = [];
  for (let minor = NEWEST[1]; minor >= OLDEST[1]; minor -= 1) {
    versions.push(`python3.${minor}`);
  }
  return ["python3", "python", ...versions].map((program) => ({ program, arguments: [] }));
}

/** The Python of an environment's folder. */
export function pythonIn(environment: string, platform: NodeJS.Platform = process.platform): string {
  return platform === "win32"
    ? win32.join(environment, "Scripts", "python.exe")
    : posix.join(environment, "bin", "python");
}

/**
 * A path as a user writes it: `~`, `${userHome}`, `${workspaceFolder}` and `${env:NAME}` are filled in, and what is
 * relative is taken from the opened folder. A bare name is left as it is: it is the path's.
 */
export function filled(text: string, workspaceFolder: string | undefined): string {
  const path = text
    .trim()
    .replace(/^~(?=$|[\\/])/, homedir)
    .replace(/\$\{userHome\}/g, homedir)
    .replace(/\$\{workspaceFolder\}/g, () => workspaceFolder ?? "${workspaceFolder}")
    .replace(/\$\{env:(\w+)\}/g, (_whole, name: string) => process.env[name] ?? "");
  return /[\\/]/.test(path) && !isAbsolute(path) && workspaceFolder ? join(workspaceFolder, path) : path;
}

/** What a setting names, as a command; the folder of an environment stands for its Python. */
export function named(setting: string, workspaceFolder: string | undefined): Command {
  const path = filled(setting, workspaceFolder);
  const isFolder = /[\\/]/.test(path) && isEnvironment(path);
  return { program: isFolder ? pythonIn(path) : path, arguments: [] };
}

/** Whether a folder is a virtual environment, sound or not. */
export function isEnvironment(path: string): boolean {
  try {
    return statSync(path).isDirectory() && (existsSync(join(path, "pyvenv.cfg")) || existsSync(pythonIn(path)));
  } catch {
    return false;
  }
}

/** Whether `path` lies in one of the folders. */
export function liesIn(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const from = relative(folder, path);
    return from === "" || (!from.startsWith("..") && !isAbsolute(from));
  });
}

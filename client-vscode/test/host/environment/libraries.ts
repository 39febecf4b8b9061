/** What a package of the extension has bundled and its folder in the repository has not: where new Pythons find it. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { extensions } from "vscode";

let brought = false;

export function bringLibraries(python: string): void {
  const { extensionPath } = extensions.getExtension("warpwright.warpwright") ?? { extensionPath: "" };
  if (brought || existsSync(join(extensionPath, "bundled"))) {
    return;
  }
  const libraries = mkdtempSync(join(tmpdir(), "libraries-"));
  const given = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", libraries, "-r", join(extensionPath, "libs.txt")];
  execFileSync(python, given, { stdio: "pipe" });
  process.env["PYTHONPATH"] = [process.env["PYTHONPATH"], libraries].filter(Boolean).join(delimiter);
  brought = true;
}

/** Whether pip can be used here. */
export function reachesIndex(python: string): boolean {
  const given = ["-m", "pip", "index", "versions", "numpy", "--timeout", "5", "--retries", "0"];
  return spawnSync(python, given, { stdio: "ignore", timeout: 20_000 }).status === 0;
}

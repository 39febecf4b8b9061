// Installs a real VS Code (the server of code-server's package), the Node that it needs and Playwright, to run the tests in.
//
//     node test/install.mjs EDITOR
//
// EDITOR is a folder; 750 MB. Chromium is not installed: CHROMIUM names one elsewhere than /usr/bin/chromium.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const node = process.platform === "darwin" && process.arch === "arm64" ? "node-bin" : "node";
const VERSIONS = {
  [`${node}-${process.platform}-${process.arch}`]: "24.21.0",
  "code-server": "4.139.1",
  "playwright-core": "1.65.1",
};

const editor = resolve(process.argv[2] ?? "");
const done = join(editor, "installed.json");
const vscode = join(editor, "node_modules", "code-server", "lib", "vscode");
if (!existsSync(done) || readFileSync(done, "utf8") !== JSON.stringify(VERSIONS)) {
  mkdirSync(editor, { recursive: true });
  writeFileSync(join(editor, "package.json"), JSON.stringify({ private: true, dependencies: VERSIONS }));
  for (const folder of [editor, vscode, join(vscode, "extensions")]) {
    execFileSync("npm", ["install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
}
writeFileSync(done, JSON.stringify(VERSIONS));

// Bundles the extension, and with --test its tests, into dist/.
import { build } from "esbuild";

const entryPoints = process.argv.includes("--test") ? ["src/extension.ts", "test/index.ts"] : ["src/extension.ts"];

await build({
  entryPoints,
  outdir: "dist",
  outbase: ".",
  entryNames: "[name]",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: true,
  sourcemap: false,
  legalComments: "none",
});

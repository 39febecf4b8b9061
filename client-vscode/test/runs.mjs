// The runs of the tests: each is one window on a workspace of its own, with the tests of test/host/<name>/*.ts.
//
// `settings` are the workspace's. `prepare(folder)` changes the copy of the workspace before it is opened. `trust` leaves
// it to the user whether the folder is trusted; without it every folder is.
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export const RUNS = [
  { name: "features" },
  { name: "wrong-settings", settings: {
    "warpwright.arch": 90,
    "warpwright.block": "many",
    "warpwright.ignore": "bank-conflict",
    "warpwright.compile": true,
    "warpwright.optimizeSeconds": -1,
  } },
  { name: "read-only", prepare: lock },
  { name: "large", prepare: fill },
  { name: "environment" },
  { name: "untrusted", trust: true, prepare: askToCompile },
];

/** What a folder asks for that its user does not trust. */
async function askToCompile(folder) {
  await writeFile(join(folder, "warpwright.toml"), 'compile = "onPause"\n');
}

/** Take the right to write from every file and folder. */
async function lock(folder) {
  for (const entry of await readdir(folder, { recursive: true })) {
    await chmod(join(folder, entry), entry.includes(".") && !entry.startsWith(".vscode") ? 0o444 : 0o555);
  }
  await chmod(folder, 0o555);
}

/** Two thousand CUDA files, and one of 5 MB. */
async function fill(folder) {
  const kernel = (number) => `__global__ void scale_${number}(float* x) { x[threadIdx.x * 2] *= 2.0f; }\n`;
  for (let each = 0; each < 40; each += 1) {
    await mkdir(join(folder, `part_${each}`));
    for (let number = 0; number < 50; number += 1) {
      await writeFile(join(folder, `part_${each}`, `scale_${number}.cu`), kernel(number));
    }
  }
  const many = Array.from({ length: 90_000 }, (_, number) => kernel(number)).join("");
  await writeFile(join(folder, "huge.cu"), many);
}

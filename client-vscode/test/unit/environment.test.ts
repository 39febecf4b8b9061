/** Making an environment: the steps, what is shown of pip, what is said of failures, and that a cancel leaves nothing. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { compilation, EXTRAS, offered, stepsOf, weighs } from "../../src/environment/extras";
import { CancelledError, lacksSpace, makeEnvironment, type Wanted } from "../../src/environment/make";
import { adviceFor, Progress } from "../../src/environment/pip";
import { pythonIn } from "../../src/python/places";

const folder = mkdtempSync(join(tmpdir(), "warpwright-environments-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const posix = { skip: process.platform === "win32" };
const fresh = { isThere: false, afresh: false, hasToolkit: false };

test("an environment is made, then filled part by part, and the server is not installed into it", () => {
  const steps = stepsOf("/usr/bin/python3", "/e", ["gpu", "emulator"], fresh);
  const python = pythonIn("/e");
  assert.deepEqual(steps.map((step) => step.title), [
    "Creating the environment", "Updating pip", "Installing: Emulator", "Installing: GPU harness",
  ]);
  assert.deepEqual(steps.map((step) => step.command.program), ["/usr/bin/python3", python, python, python]);
  const given = steps.flatMap((step) => step.command.arguments);
  assert.ok(!given.some((each) => each.startsWith("warpwright")), String(given));
  assert.ok(steps.at(-1)?.command.arguments.some((each) => /^torch==2\.15/.test(each)));
});

test("what is there is added to, and torch goes with an installed toolkit", () => {
  const steps = stepsOf("/usr/bin/python3", "/e", ["gpu"], { isThere: true, afresh: false, hasToolkit: true });
  assert.deepEqual(steps.map((step) => step.title), ["Updating pip", "Installing: GPU harness"]);
  assert.ok(steps[1]?.command.arguments.includes("torch==2.13.0"));
  const anew = stepsOf("/usr/bin/python3", "/e", [], { isThere: true, afresh: true, hasToolkit: true });
  assert.ok(anew[0]?.command.arguments.includes("--clear"));
});

test("the model's runtime is compiled as the Makefile does, also below a folder with a space", () => {
  const { CMAKE_ARGS: given = "" } = compilation("/Users/a/Application Support/e");
  assert.match(given, /^"-DCMAKE_PROJECT_llama\.cpp_INCLUDE=\/Users\/a\/Application Support\/e\/llama_library_only\.cmake" -D/);
  assert.match(given, /-DGGML_NATIVE=ON/);
});

test("what splits the options as a shell does finds the place whole, whatever it is called", posix, () => {
  const split = "import json, shlex, sys; print(json.dumps(shlex.split(sys.argv[1])))"; // as scikit-build-core does
  for (const folder of ["/home/a/e", "/Users/a/Application Support/e", `/home/o'neil/"a" $1/e`]) {
    const { CMAKE_ARGS: asked = "" } = compilation(folder);
    const [first] = JSON.parse(execFileSync("python3", ["-c", split, asked], { encoding: "utf8" })) as string[];
    assert.equal(first, `-DCMAKE_PROJECT_llama.cpp_INCLUDE=${folder}/llama_library_only.cmake`);
  }
});

test("each extra says what it is for and what it takes; macOS is offered what can be had there", () => {
  assert.ok(EXTRAS.every((extra) => extra.gives.endsWith(".")));
  assert.deepEqual(EXTRAS.map(weighs).slice(0, 1), ["17 MB to download, 70 MB on disk, takes seconds"]);
  assert.match(weighs(EXTRAS[3] ?? raise()), /^3 GB to download, 6 GB on disk/);
  assert.deepEqual(offered("darwin").map((extra) => extra.name), ["model"]);
  assert.deepEqual(offered("linux").map((extra) => extra.name), ["emulator", "cuda", "model", "gpu"]);
});

function raise(): never {
  throw new Error("no such extra");
}

test("pip's lines become what is done now", () => {
  const said: [line: string, shown: string][] = [
    ["Collecting numpy>=2.1", "looking for numpy"],
    ["  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (62 kB)", "looking at numpy"],
    ["Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)", "downloading numpy"],
    ["Progress 8000000 of 16900000", "downloading numpy (8 of 17 MB)"],
    ["Building wheel for llama-cpp-python (pyproject.toml): started", "compiling llama-cpp-python, which takes minutes"],
    ["  Building wheel for llama-cpp-python (pyproject.toml): still running...", "compiling llama-cpp-python, which takes minutes"],
    ["Installing collected packages: numpy", "unpacking"],
    ["a line of something else", "unpacking"],
  ];
  const progress = new Progress();
  for (const [line, shown] of said) {
    assert.equal(progress.take(line), !line.startsWith("Progress"));
    assert.equal(progress.shown, shown);
  }
});

test("a failure says what to do", () => {
  const said: [text: string, platform: NodeJS.Platform, advice: RegExp][] = [
    ["WARNING: Retrying ... NewConnectionError('<pip>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')\nERROR: No matching distribution found for numpy", "linux", /^The package index cannot be reached\. .*http\.proxy/],
    ["ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403'))", "linux", /^The proxy cannot be reached/],
    ["SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", "darwin", /PIP_CERT/],
    ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "linux", /^The disk is full/],
    ["CMake Error: CMAKE_CXX_COMPILER not set, after EnableLanguage\nERROR: Failed building wheel for llama-cpp-python", "linux", /^No C\+\+ compiler .*apt install g\+\+/],
    ["CMake Error: CMAKE_C_COMPILER not set, after EnableLanguage", "darwin", /xcode-select --install/],
    ["could not find any instance of Visual Studio", "win32", /Build Tools/],
    ["FileNotFoundError: [Errno 2] No such file or directory: 'cmake'", "linux", /^CMake was not found/],
    ["ensurepip is not\navailable".replace("\n", " "), "linux", /apt install python3-venv/],
    ["ERROR: No matching distribution found for torch==2.15.0", "linux", /^The package index has no torch==2\.15\.0 for this Python/],
    ["Error: [Errno 13] Permission denied: '/opt/e'", "linux", /may not be written/],
    ["something\nERROR: nobody foresaw this\nmore", "linux", /^ERROR: nobody foresaw this$/],
  ];
  for (const [text, platform, advice] of said) {
    assert.match(adviceFor(text, platform), advice);
  }
});

function wanted(base: string, name: string, more: Partial<Wanted> = {}): Wanted {
  return { base, folder: join(folder, name), extras: ["emulator"], afresh: false, hasToolkit: false, proxy: "", ...more };
}

/** A "Python" that makes an environment whose Python is a script. */
function maker(name: string, python: string, before = ""): string {
  const path = join(folder, name);
  const made = `eval "into=\\\${$#}"; mkdir -p "$into/bin"; touch "$into/pyvenv.cfg"; cp "${path}.python" "$into/bin/python"`;
  writeFileSync(`${path}.python`, `#!/bin/sh\n${python}\n`);
  chmodSync(`${path}.python`, 0o755);
  writeFileSync(path, `#!/bin/sh\n${before}\n${made}\n`);
  chmodSync(path, 0o755);
  return path;
}

test("a failure keeps what was made, and the next try goes on from there", posix, async () => {
  const base = maker("fails-once", `[ "$4" = --version ] && exit 0; [ -e "${folder}/net" ] || { echo 'Network is unreachable' >&2; exit 1; }`);
  const want = wanted(base, "again");
  const never = new AbortController().signal;
  const shown: string[] = [];
  const make = () => makeEnvironment(want, (message) => shown.push(message), () => undefined, never);
  await assert.rejects(make(), /^Error: Updating pip failed\. The package index cannot be reached\./);
  assert.ok(existsSync(join(want.folder, "pyvenv.cfg")));
  writeFileSync(join(folder, "net"), "");
  assert.equal(await make(), pythonIn(want.folder));
  assert.equal(shown.filter((message) => message === "Creating the environment").length, 1);
});

test("a cancel ends what runs, and leaves no half of an environment", posix, async () => {
  const base = maker("slow", "exit 0", `mkdir -p "${folder}/half"; echo $$ > "${folder}/slow.pid"; echo begun; exec sleep 631`);
  const cancel = new AbortController();
  const made = makeEnvironment(wanted(base, "half"), () => undefined, (line) => line === "begun" && cancel.abort(), cancel.signal);
  await assert.rejects(made, CancelledError);
  assert.equal(existsSync(join(folder, "half")), false);
  const pid = Number(readFileSync(join(folder, "slow.pid"), "utf8"));
  assert.throws(() => process.kill(pid, 0));
});

test("a folder with files that are no environment is left alone", async () => {
  const other = join(folder, "other");
  mkdirSync(other);
  writeFileSync(join(other, "thesis.tex"), "");
  const made = makeEnvironment(wanted("python3", "other"), () => undefined, () => undefined, new AbortController().signal);
  await assert.rejects(made, /holds other files than those of an environment/);
  assert.ok(existsSync(join(other, "thesis.tex")));
});

test("too little space is said before anything is downloaded", () => {
  assert.equal(lacksSpace(["emulator"], 100, "/home"), undefined);
  const told = "6.1 GB are needed on disk, and /home has 99 MB left. Free some space, choose fewer parts, or another folder.";
  assert.equal(lacksSpace(["emulator", "gpu"], 99, "/home"), told);
});

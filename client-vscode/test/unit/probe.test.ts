/** Pythons of every kind, as programs on disk: what is said of each that cannot be used. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isNewEnough, usable, type PythonFault } from "../../src/python/probe";

const folder = mkdtempSync(join(tmpdir(), "warpwright-pythons-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const posix = { skip: process.platform === "win32" };
const good = process.env["WARPWRIGHT_TEST_PYTHON"] ?? "python3";

/** A folder with modules of tree-sitter's names, so that the Python that runs these tests needs no library. */
const libraries = join(folder, "libraries");
mkdirSync(libraries);
for (const name of ["tree_sitter", "tree_sitter_cuda"]) {
  writeFileSync(join(libraries, `${name}.py`), "");
}

function program(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function refused(path: string, libs = [libraries], milliseconds = 15_000): Promise<PythonFault> {
  try {
    await usable({ program: path, arguments: [] }, libs, "Python", { milliseconds });
  } catch (error) {
    return error as PythonFault;
  }
  throw new Error(`${path} was taken for a usable Python`);
}

test("a sound Python is told by its own path and version", async () => {
  const found = await usable({ program: good, arguments: [] }, [libraries], "Python");
  assert.equal(isNewEnough(found.version), true);
  const said = execFileSync(found.path, ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
  assert.equal(found.path, said);
});

test("what a site prints before does no harm", posix, async () => {
  const path = program("chatty", `echo welcome; echo; exec "${good}" "$@"`);
  assert.ok(await usable({ program: path, arguments: [] }, [libraries], "Python"));
});

test("one that is not there", async () => {
  const fault = await refused(join(folder, "nowhere"));
  assert.equal(fault.kind, "absent");
  assert.match(fault.message, /nowhere, is not there$/);
});

test("one that is too old, with its version", posix, async () => {
  const fault = await refused(program("old", `printf 'warpwright-python\\t3.9.2\\t/usr/bin/python3\\t\\n'`));
  assert.equal(fault.kind, "old");
  assert.match(fault.message, /is Python 3\.9\.2$/);
  assert.match(fault.advice, /3\.11 or newer/);
});

test("Python 2, which knows no isolation", posix, async () => {
  const fault = await refused(program("two", "echo 'Unknown option: -I' >&2; exit 2"));
  assert.equal(fault.kind, "old");
  assert.match(fault.message, /is Python 2$/);
});

test("one that never answers is killed, with what it started", posix, async () => {
  const fault = await refused(program("hangs", `sleep 613 & echo $! > "${folder}/child"; wait`), [libraries], 400);
  assert.match(fault.message, /did not answer in 0\.4 seconds$/);
  const child = readFileSync(join(folder, "child"), "utf8").trim();
  assert.match(spawnSync("ps", ["-o", "stat=", "-p", child], { encoding: "utf8" }).stdout.trim(), /^(Z.*)?$/);
});

test("one that prints rubbish, once or without end", posix, async () => {
  const once = await refused(program("rubbish", "echo 'Segmentation violation: core dumped?'"));
  assert.match(once.message, /does not answer as Python does: it said "Segmentation violation/);
  const endless = await refused(program("endless", "exec yes rubbish"));
  assert.match(endless.message, /does not answer as Python does: it said "rubbish"/);
});

test("an environment whose Python is gone", posix, async () => {
  const environment = join(folder, "orphan");
  mkdirSync(join(environment, "bin"), { recursive: true });
  writeFileSync(join(environment, "pyvenv.cfg"), "home = /opt/python3.12/bin\nversion = 3.12.1\n");
  symlinkSync("/opt/python3.12/bin/python3", join(environment, "bin", "python"));
  const fault = await refused(join(environment, "bin", "python"));
  assert.equal(fault.kind, "broken");
  assert.match(fault.message, /environment that was made with the Python in \/opt\/python3\.12\/bin, that is gone$/);
  assert.match(fault.advice, /Make the environment anew/);
});

test("one without its standard library", posix, async () => {
  const text = "echo \"Fatal Python error: init_fs_encoding: failed to get the Python codec\" >&2; "
    + "echo \"ModuleNotFoundError: No module named 'encodings'\" >&2; exit 1";
  const fault = await refused(program("bare", text));
  assert.match(fault.message, /has no standard library$/);
});

test("one that this machine cannot run, or may not", posix, async () => {
  const text = join(folder, "text");
  writeFileSync(text, "not a program");
  assert.match((await refused(text)).message, /is not a program that may be run$/);
  const ends = await refused(program("ends", "echo 'cannot open shared object file' >&2; exit 127"));
  assert.match(ends.message, /does not run \(status 127: cannot open shared object file\)$/);
  const killed = await refused(program("killed", "kill -SEGV $$"));
  assert.match(killed.message, /does not run \(signal SIGSEGV\)$/);
});

test("one for which the compiled libraries are not made", async () => {
  const others = join(folder, "others");
  mkdirSync(others);
  writeFileSync(join(others, "tree_sitter.py"), "raise ImportError('wrong ELF class: ELFCLASS32')");
  const fault = await refused(good, [others]);
  assert.equal(fault.kind, "broken");
  assert.match(fault.message, /cannot load the server's libraries: wrong ELF class: ELFCLASS32 \(\w+\)$/);
});

test("Windows' placeholder for a Python", posix, async () => {
  const text = "echo 'Python was not found; run without arguments to install from the Microsoft Store' >&2; exit 49";
  assert.match((await refused(program("store", text))).message, /is Windows' placeholder/);
});

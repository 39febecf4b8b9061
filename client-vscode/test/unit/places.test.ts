/** Names and paths of Pythons on each platform, and the programs that end processes there. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Deaths, MOST_RESTARTS, WITHIN_MILLISECONDS } from "../../src/deaths";
import { Lines, run, windowsKill } from "../../src/processes";
import { liesIn, named, onThePath, pythonIn } from "../../src/python/places";

const folder = mkdtempSync(join(tmpdir(), "warpwright-places-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("the path is asked by each platform's names", () => {
  assert.deepEqual(onThePath("win32")[0], { program: "py", arguments: ["-3"] });
  assert.deepEqual(onThePath("linux").map((each) => each.program), [
    "python3", "python", "python3.14", "python3.13", "python3.12", "python3.11",
  ]);
});

test("an environment's Python lies where its platform puts it", () => {
  assert.equal(pythonIn("C:\\work\\.venv", "win32"), "C:\\work\\.venv\\Scripts\\python.exe");
  assert.equal(pythonIn("/home/me/.venv", "darwin"), "/home/me/.venv/bin/python");
});

test("a setting may use home, the opened folder and variables, and name an environment", () => {
  const environment = join(folder, "sound");
  mkdirSync(environment);
  writeFileSync(join(environment, "pyvenv.cfg"), "home = /usr/bin\n");
  assert.equal(named(environment, undefined).program, pythonIn(environment));
  assert.equal(named("sound", folder).program, "sound");
  assert.equal(named("./sound", folder).program, pythonIn(environment));
  assert.equal(named("~/bin/python3", folder).program, join(homedir(), "bin", "python3"));
  assert.equal(named("${workspaceFolder}/py", "/some/folder$&").program, "/some/folder$&/py");
  assert.equal(named("python3.12", folder).program, "python3.12");
});

test("what lies in a folder", () => {
  assert.equal(liesIn("/home/me/a/.venv/bin/python", ["/home/me/a"]), true);
  assert.equal(liesIn("/home/me/ab/python", ["/home/me/a"]), false);
  assert.equal(liesIn("/usr/bin/python3", []), false);
});

test("on Windows a process is killed with all that it started", () => {
  assert.deepEqual(windowsKill(4711), { program: "taskkill", arguments: ["/PID", "4711", "/T", "/F"] });
});

test("pieces of text become lines, and so does what is rewritten in place", () => {
  const lines: string[] = [];
  const hears = new Lines((line) => lines.push(line));
  ["Collecting nu", "mpy\r\nDown", "loading\rdone", "\n", "rest"].forEach((piece) => hears.take(piece));
  hears.end();
  assert.deepEqual(lines, ["Collecting numpy", "Downloading", "done", "rest"]);
});

test("a program is cancelled with what it started", { skip: process.platform === "win32" }, async () => {
  const cancel = new AbortController();
  const running = run(
    { program: "sh", arguments: ["-c", "sleep 619 & echo ready; wait"] },
    { signal: cancel.signal, onLine: () => cancel.abort() },
  );
  assert.equal((await running).why, "cancelled");
});

test("a sixth death within three minutes is one too many, and old ones are forgotten", () => {
  const deaths = new Deaths();
  const counts = Array.from({ length: 6 }, (_each, second) => deaths.add(second * 1000));
  assert.deepEqual(counts, [1, 2, 3, 4, 5, 6]);
  assert.ok((counts.at(-1) ?? 0) > MOST_RESTARTS);
  assert.equal(deaths.add(5_000 + WITHIN_MILLISECONDS), 2);
  deaths.forget();
  assert.equal(deaths.add(6_000 + WITHIN_MILLISECONDS), 1);
});

/** Making an environment, step by step; it can be cancelled and tried again. */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { rm, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { run, type Ended } from "../processes";
import { isEnvironment, pythonIn } from "../python/places";
import { EXTRAS, size, stepsOf, writeCompilation, type ExtraName } from "./extras";
import { adviceFor, Progress } from "./pip";

/** With pip alone. */
const ENVIRONMENT_MEGABYTES = 30;

export interface Wanted {
  /** The Python that it is made with. */
  readonly base: string;
  readonly folder: string;
  readonly extras: readonly ExtraName[];
  /** Remove what lies there before. */
  readonly afresh: boolean;
  /** Whether an nvcc other than that of the extras is used. */
  readonly hasToolkit: boolean;
  /** Address of a proxy; empty where there is none. */
  readonly proxy: string;
}

/** Why there is no environment: sentences for the user. */
export class EnvironmentError extends Error {}
export class CancelledError extends Error {}

/**
 * The Python of a new environment, or of one that was there, with the extras. `show` hears what is done, with the
 * share of all steps that is done; `log` each line that a program writes. What was installed before a failure stays,
 * so that trying again goes on from there. Throws EnvironmentError, and CancelledError where `signal` is aborted.
 */
export async function makeEnvironment(
  wanted: Wanted,
  show: (message: string, share: number) => void,
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<string> {
  const { folder } = wanted;
  if (existsSync(folder) && !isEnvironment(folder) && readdirSync(folder).length > 0) {
    throw new EnvironmentError(`${folder} holds other files than those of an environment. Choose an empty or a new folder.`);
  }
  try {
    mkdirSync(dirname(folder), { recursive: true });
  } catch (error) {
    throw new EnvironmentError(`${dirname(folder)} cannot be made: ${adviceFor(String(error))}`);
  }
  await checkSpace(wanted);
  const isThere = await runs(pythonIn(folder), signal);
  const afresh = wanted.afresh || (existsSync(folder) && !isThere);
  const steps = stepsOf(wanted.base, folder, wanted.extras, { isThere, afresh, hasToolkit: wanted.hasToolkit });
  const { PYTHONPATH: _path, PYTHONHOME: _home, ...inherited } = process.env;
  const proxied = wanted.proxy && !inherited["HTTPS_PROXY"] ? { HTTPS_PROXY: wanted.proxy, HTTP_PROXY: wanted.proxy } : {};
  for (const [index, step] of steps.entries()) {
    if (Object.keys(step.variables).length > 0) {
      writeCompilation(folder);
    }
    const progress = new Progress();
    const tell = (): void => show(progress.shown ? `${step.title}: ${progress.shown}` : step.title, index / steps.length);
    tell();
    log(`$ ${[step.command.program, ...step.command.arguments].join(" ")}`);
    const started = Date.now();
    const ended = await run(step.command, {
      signal,
      folder: dirname(folder),
      environment: { ...inherited, ...proxied, ...step.variables, PYTHONUTF8: "1", PYTHONUNBUFFERED: "1" },
      onLine: (line) => {
        if (progress.take(line)) {
          log(line);
        }
        tell();
      },
    }).catch((error: unknown) => {
      throw new EnvironmentError(`${step.title} failed: ${step.command.program} cannot be started (${String(error)}).`);
    });
    if (signal.aborted || ended.why === "cancelled") {
      // What venv left unfinished cannot be told from a broken environment.
      if (step.command.program === wanted.base) {
        await rm(folder, { recursive: true, force: true });
      }
      throw new CancelledError();
    }
    if (ended.status !== 0) {
      throw new EnvironmentError(`${step.title} failed. ${adviceFor(`${ended.stdout}\n${ended.stderr}`)}`);
    }
    log(`${step.title}: done in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  return pythonIn(folder);
}

async function checkSpace({ folder, extras }: Wanted): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(folder));
  const lacking = lacksSpace(extras, (bavail * bsize) / 1e6, dirname(folder));
  if (lacking !== undefined) {
    throw new EnvironmentError(lacking);
  }
}

/** What to say where a disk has too few megabytes left for the extras; undefined where they fit. */
export function lacksSpace(extras: readonly ExtraName[], free: number, where: string): string | undefined {
  const chosen = EXTRAS.filter((extra) => extras.includes(extra.name));
  const needed = chosen.reduce((sum, extra) => sum + extra.diskMegabytes, ENVIRONMENT_MEGABYTES);
  return free >= needed
    ? undefined
    : `${size(needed)} are needed on disk, and ${where} has ${size(free)} left. Free some space, choose fewer parts, or another folder.`;
}

async function runs(python: string, signal: AbortSignal): Promise<boolean> {
  const asked: Promise<Ended | undefined> = run({ program: python, arguments: ["-I", "-m", "pip", "--version"] }, { milliseconds: 60_000, signal });
  return (await asked.catch(() => undefined))?.status === 0;
}

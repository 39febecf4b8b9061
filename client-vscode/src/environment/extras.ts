/** What an environment can be given: what it is for, what it takes, and how pip is told to install it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonIn } from "../python/places";
import type { Command } from "../processes";
import requirements from "./requirements.json";

export type ExtraName = keyof typeof requirements.extras;

interface Extra {
  readonly name: ExtraName;
  readonly label: string;
  /** What is downloaded and what lies on disk afterwards, in MB; measured for Linux on x86-64. */
  readonly downloadMegabytes: number;
  readonly diskMegabytes: number;
  readonly takes: string;
  readonly gives: string;
  readonly platforms: readonly NodeJS.Platform[];
}

export const EXTRAS: readonly Extra[] = [
  {
    name: "emulator",
    label: "Emulator",
    downloadMegabytes: 17,
    diskMegabytes: 70,
    takes: "seconds",
    gives: "Runs, compares and profiles kernels on the CPU, where the compiler is there too. Brings NumPy.",
    platforms: ["linux", "win32"],
  },
  {
    name: "cuda",
    label: "Compiler",
    downloadMegabytes: 120,
    diskMegabytes: 320,
    takes: "seconds",
    gives: "NVIDIA's nvcc with the disassembler: compile errors as you type, registers, spills, SASS, verified fixes.",
    platforms: ["linux", "win32"],
  },
  {
    name: "model",
    label: "Model",
    downloadMegabytes: 340,
    diskMegabytes: 620,
    takes: "two to four minutes: its runtime is compiled, for which a C++ compiler must be installed",
    gives: "Drafts kernels from comments and plans searches, with a small model that runs on this machine.",
    platforms: ["linux", "win32", "darwin"],
  },
  {
    name: "gpu",
    label: "GPU harness",
    downloadMegabytes: 3_000,
    diskMegabytes: 6_000,
    takes: "minutes",
    gives: "Runs, compares and times kernels on an NVIDIA GPU of this machine. Brings torch.",
    platforms: ["linux"],
  },
];

/** Those that this platform can have: NVIDIA has no compiler for macOS, and torch's CUDA for Windows is elsewhere. */
export function offered(platform: NodeJS.Platform = process.platform): Extra[] {
  return EXTRAS.filter((extra) => extra.platforms.includes(platform));
}

/** "17 MB to download, 70 MB on disk, takes seconds". */
export function weighs(extra: Extra): string {
  return `${size(extra.downloadMegabytes)} to download, ${size(extra.diskMegabytes)} on disk, takes ${extra.takes}`;
}

export function size(megabytes: number): string {
  return megabytes >= 1000 ? `${(megabytes / 1000).toFixed(1).replace(/\.0$/, "")} GB` : `${Math.round(megabytes)} MB`;
}

/** One step of making an environment. */
export interface Step {
  readonly title: string;
  readonly command: Command;
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * How an environment in `folder` is made and filled. `afresh` removes what lies there before. The server is not
 * installed: it comes with the extension, and the environment's Python runs that one, so that both are one version.
 */
export function stepsOf(
  base: string,
  folder: string,
  extras: readonly ExtraName[],
  made: { readonly isThere: boolean; readonly afresh: boolean; readonly hasToolkit: boolean },
): Step[] {
  const python = pythonIn(folder);
  const pip = (...given: string[]): Command => ({
    program: python,
    arguments: ["-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", ...given],
  });
  const steps: Step[] = [];
  if (!made.isThere || made.afresh) {
    const clear = made.afresh ? ["--clear"] : [];
    steps.push({
      title: "Creating the environment",
      command: { program: base, arguments: ["-I", "-m", "venv", ...clear, folder] },
      variables: {},
    });
  }
  // Older ones cannot say how far a download is.
  steps.push({ title: "Updating pip", command: pip("--upgrade", "pip"), variables: {} });
  const torch = requirements.torch[extras.includes("cuda") || !made.hasToolkit ? "wheels" : "toolkit"];
  for (const extra of EXTRAS.filter((each) => extras.includes(each.name))) {
    const pins = extra.name === "gpu" ? torch : [];
    steps.push({
      title: `Installing: ${extra.label}`,
      command: pip("--progress-bar", "raw", ...requirements.extras[extra.name], ...pins),
      variables: extra.name === "model" ? compilation(folder) : {},
    });
  }
  return steps;
}

/** How llama.cpp is compiled. The file that the options name is written into the environment. */
export function compilation(folder: string): Record<string, string> {
  const file = join(folder, "llama_library_only.cmake").replaceAll("\\", "/").replaceAll('"', '\\"');
  // The place stands between double quotes, and the arguments are split as a shell splits them.
  const given = requirements.cmakeArguments.replace("{file}", () => file);
  return { CMAKE_ARGS: given, SKBUILD_WHEEL_EXCLUDE: requirements.wheelExclude };
}

export function writeCompilation(folder: string): void {
  writeFileSync(join(folder, "llama_library_only.cmake"), requirements.cmakeFile);
}

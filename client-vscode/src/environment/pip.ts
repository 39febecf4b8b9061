/** What pip says, for people: the step under way, and what to do about a failure. */

/** Hears pip's lines; `shown` is what is done now. */
export class Progress {
  private doing = "";
  private megabytes = "";

  /** Whether the line is worth a place in the log. */
  take(line: string): boolean {
    const bytes = /^Progress (\d+) of (\d+)/.exec(line.trim());
    if (bytes !== null) {
      const [done = 0, all = 0] = bytes.slice(1).map((each) => Number(each) / 1e6);
      this.megabytes = all >= 1 ? ` (${Math.floor(done)} of ${Math.ceil(all)} MB)` : "";
      return false;
    }
    const next = doingOf(line);
    if (next !== undefined) {
      this.doing = next;
      this.megabytes = "";
    }
    return true;
  }

  get shown(): string {
    return this.doing + this.megabytes;
  }
}

function doingOf(line: string): string | undefined {
  const [, word = "", what = ""] = /^\s*(Collecting|Downloading|Using cached|Building wheel for|Installing|Preparing metadata)\b:?\s*(\S*)/.exec(line) ?? [];
  switch (word) {
    case "Collecting":
      return `looking for ${nameOf(what)}`;
    case "Downloading":
    case "Using cached":
      return what.includes(".metadata") ? `looking at ${nameOf(what)}` : `downloading ${nameOf(what)}`;
    case "Building wheel for":
      return `compiling ${what}, which takes minutes`;
    case "Preparing metadata":
      return "preparing to compile";
    case "Installing":
      return what === "collected" ? "unpacking" : undefined;
    default:
      return undefined;
  }
}

/** "numpy" of "numpy>=2.1", of an address and of a wheel's name. */
function nameOf(requirement: string): string {
  const file = requirement.split("/").at(-1) ?? requirement;
  const isFile = /\.(whl|tar\.gz|zip)/.test(file);
  return (isFile ? /^(.+?)-\d/.exec(file)?.[1] : /^[\w.-]+/.exec(file)?.[0]) ?? file;
}

interface Advice {
  readonly seen: RegExp;
  readonly say: (found: RegExpExecArray, platform: NodeJS.Platform) => string;
}

/** First what was the cause, where pip goes on to say more: a full disk before the compiler that failed for it. */
const ADVICE: readonly Advice[] = [
  {
    seen: /No space left on device|ENOSPC|\[Errno 28\]|Disk quota exceeded|There is not enough space on the disk/,
    say: () => "The disk is full. Free some space, or choose another folder.",
  },
  {
    seen: /ensurepip is not available|No module named '?(ensurepip|venv)/,
    say: (_found, platform) =>
      `This Python cannot make environments: it lacks venv. ${
        platform === "linux" ? "Install it (Debian, Ubuntu: `sudo apt install python3-venv`)" : "Install Python whole"
      }, or select another interpreter.`,
  },
  {
    seen: /CERTIFICATE_VERIFY_FAILED|SSLError|certificate verify failed/,
    say: () =>
      "The package index's certificate was not accepted. Behind a proxy that reads traffic, name its certificate in the variable PIP_CERT.",
  },
  {
    seen: /ProxyError|Tunnel connection failed|Cannot connect to proxy/,
    say: () => "The proxy cannot be reached. Look at the setting http.proxy or the variable HTTPS_PROXY.",
  },
  {
    seen: /name resolution|Name or service not known|getaddrinfo failed|nodename nor servname|NewConnectionError|Network is unreachable|Connection refused|ConnectTimeout|Read timed out|ReadTimeoutError|Connection reset/,
    say: () =>
      "The package index cannot be reached. Connect to the network, set a proxy in the setting http.proxy, or name another index in the variable PIP_INDEX_URL.",
  },
  {
    seen: /CMAKE_(?:CXX|C)_COMPILER|No CMAKE_|could not find any instance of Visual Studio|Microsoft Visual C\+\+|xcrun: error|unable to find (?:a )?(?:C\+\+ )?compiler|gcc: not found|g\+\+: not found|cl\.exe.*not found/i,
    say: (_found, platform) => {
      const how: Partial<Record<NodeJS.Platform, string>> = {
        linux: "Debian, Ubuntu: `sudo apt install g++`; Fedora: `sudo dnf install gcc-c++`",
        darwin: "`xcode-select --install`",
        win32: "Visual Studio's Build Tools with C++",
      };
      return `No C++ compiler was found, and the model's runtime is compiled here. Install one (${how[platform] ?? "g++ or clang++"}), or leave the model out.`;
    },
  },
  {
    seen: /CMake (?:was not found|must be installed)|Could not find CMake|command 'cmake' failed|No such file or directory: '(?:cmake|ninja|make)'/,
    say: () => "CMake was not found, and the model's runtime is compiled here. Install CMake, or leave the model out.",
  },
  {
    seen: /Permission denied|EACCES|EROFS|\[Errno 13\]|Access is denied|Read-only file system|\[Errno 30\]/,
    say: () => "The folder may not be written. Choose another one.",
  },
  {
    seen: /No matching distribution found for (\S+)/,
    say: (found) => `The package index has no ${found[1]} for this Python and platform. Select another interpreter, or leave it out.`,
  },
  {
    seen: /Could not build wheels for (\S+?),?|Failed to build (\S+)/,
    say: (found) => `${found[1] ?? found[2]} could not be compiled. The log has what the compiler said.`,
  },
];

/** One or two sentences on why a step failed, from all that it said. */
export function adviceFor(said: string, platform: NodeJS.Platform = process.platform): string {
  for (const { seen, say } of ADVICE) {
    const found = seen.exec(said);
    if (found !== null) {
      return say(found, platform);
    }
  }
  const errors = said.split(/\r?\n/).filter((line) => /^\s*(ERROR|error|Error)\b/.test(line));
  return (errors[0] ?? said.trim().split(/\r?\n/).at(-1) ?? "").trim().slice(0, 200);
}

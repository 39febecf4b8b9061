import type { DocumentSelector } from "vscode-languageclient/node";

/** What VS Code and other extensions call CUDA. */
export const LANGUAGES: readonly string[] = ["cuda-cpp", "cuda"];

/**
 * What the server is told of: CUDA, headers that CUDA may include, whose unsaved text counts then, and cells of notebooks,
 * of which it takes those that begin with `%%cu` and the like. Of C++ and Python it says what a torch extension does wrong,
 * and nothing of other files: all else is clangd's and Pylance's.
 */
export const SELECTOR: DocumentSelector = [
  ...LANGUAGES.flatMap((language) => ["file", "untitled"].map((scheme) => ({ scheme, language }))),
  ...["cpp", "c"].map((language) => ({ scheme: "file", language, pattern: "**/*.{h,hpp,hh,inl}" })),
  { scheme: "file", language: "cpp", pattern: "**/*.{cpp,cc,cxx}" },
  { scheme: "file", language: "python" },
  ...["python", ...LANGUAGES].map((language) => ({ notebook: "jupyter-notebook", language })),
];

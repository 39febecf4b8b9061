/** What VS Code and other extensions call CUDA. */
export const LANGUAGES: readonly string[] = ["cuda-cpp", "cuda"];

/** A project's own settings, headers, and files that are not open. */
import * as assert from "node:assert/strict";
import { DiagnosticSeverity, languages, window, workspace, type Diagnostic, type Uri } from "vscode";
import { codeOf, eventually, extension, finding, inWorkspace, open, openText, test } from "../support";

const KERNEL = `__global__ void columns(float *out, const float *in) {
  __shared__ float tile[32][32];
  tile[threadIdx.x][threadIdx.y] = in[threadIdx.y * blockDim.x + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * blockDim.x + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}
`;
const LAUNCH = "void run(float *out, const float *in) { columns<<<1, dim3(32, 16)>>>(out, in); }\n";

async function write(name: string, text: string): Promise<Uri> {
  const file = inWorkspace(name);
  await workspace.fs.writeFile(file, Buffer.from(text));
  return file;
}

function ours(file: Uri): Diagnostic[] {
  return languages.getDiagnostics(file).filter((each) => each.source === "warpwright");
}

test("warpwright.toml says how much a rule matters, what is wrong in it is marked, and its changes hold at once", async () => {
  const document = await open("transpose.cu");
  assert.equal((await finding(document, "bank-conflict")).severity, DiagnosticSeverity.Warning);
  const file = await write("warpwright.toml", 'colour = 1\n[severities]\nbank-conflict = "error"\n');
  try {
    const severity = () => ours(document.uri).find((each) => codeOf(each) === "bank-conflict")?.severity;
    await eventually(() => (severity() === DiagnosticSeverity.Error ? true : undefined), "an error");
    const [wrong] = await eventually(() => (ours(file).length > 0 ? ours(file) : undefined), "a mark in the file");
    assert.equal(wrong?.range.start.line, 0);
    assert.match(wrong.message, /colour: there is no such setting/);
    await write("warpwright.toml", 'ignore = ["memory"]\n');
    await eventually(() => (severity() === undefined && ours(file).length === 0 ? true : undefined), "no finding");
  } finally {
    await workspace.fs.delete(file);
  }
  await finding(document, "bank-conflict");
});

test("a header of C++ is judged by the launch in the file that includes it", async () => {
  await extension();
  const unit = await write("columns.cu", `#include "columns.h"\n${LAUNCH}`);
  const document = await openText("columns.h", KERNEL);
  assert.notEqual(document.languageId, "cuda-cpp");
  const found = await finding(document, "bank-conflict");
  assert.equal(found.relatedInformation?.[0]?.location.uri.fsPath, unit.fsPath);
  assert.match(found.message, /32/);
});

test("files that are not open are looked at", async () => {
  await open("transpose.cu");
  const file = await write("closed.cu", KERNEL + LAUNCH);
  const conflicts = () => ours(file).filter((each) => codeOf(each) === "bank-conflict").length;
  await eventually(() => (conflicts() > 0 ? true : undefined), "the finding of a file that is not open");
  assert.ok(window.visibleTextEditors.every((each) => each.document.uri.fsPath !== file.fsPath));
  await write("closed.cu", KERNEL.replace("[32][32]", "[32][33]") + LAUNCH);
  await eventually(() => (conflicts() === 0 ? true : undefined), "no finding after the change on disk");
});

/** Cells of a notebook that hold CUDA. */
import * as assert from "node:assert/strict";
import { window, workspace, WorkspaceEdit } from "vscode";
import { codeOf, eventually, extension, finding, findings, hoverText, inWorkspace, test } from "../support";

const CELL = `%%cu
__global__ void columns(float *out, const float *in) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run(float *out, const float *in) { columns<<<1, dim3(32, 32)>>>(out, in); }
`;

test("a cell that begins with %%cu is analysed, and others are not", async () => {
  await extension();
  const cells = [CELL, CELL.replace("%%cu", "%%time")].map((source) => ({
    cell_type: "code", execution_count: null, metadata: {}, outputs: [], source,
  }));
  const metadata = { language_info: { name: "python" } };
  const file = inWorkspace("kernels.ipynb");
  await workspace.fs.writeFile(file, Buffer.from(JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 })));
  const notebook = await workspace.openNotebookDocument(file);
  await window.showNotebookDocument(notebook);
  const [cuda, python] = notebook.getCells().map((each) => each.document);
  assert.ok(cuda && python);
  const found = await finding(cuda, "bank-conflict");
  assert.equal(cuda.getText(found.range), "tile[threadIdx.x][threadIdx.y]");
  assert.match(await hoverText(cuda, "tile[threadIdx.x]"), /bank/);
  assert.deepEqual(findings(python), []);
  const edit = new WorkspaceEdit();
  const at = cuda.positionAt(cuda.getText().indexOf("[32];") + "[32".length);
  edit.insert(cuda.uri, at, " + 1");
  assert.ok(await workspace.applyEdit(edit));
  const conflicts = () => findings(cuda).filter((each) => codeOf(each) === "bank-conflict").length;
  await eventually(() => (conflicts() === 0 ? true : undefined), "no mark after the edit");
});

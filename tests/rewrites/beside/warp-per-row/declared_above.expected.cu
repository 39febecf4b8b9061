// Declared, launched above its definition, and launched again below: all of that goes to the new kernel.
namespace rows {
  __global__ void total(float *out, const float *in, int rows, int columns);  // one row a thread
  static __global__ void total_tuned(float *out, const float *in, int rows, int columns);

  void first(float *out, const float *in, int rows, int columns) {
    total_tuned<<<(rows + 127) / 128 * 32, 128>>>(out, in, rows, columns);
  }

  // Adds up each row.
  // warpwright: shape rows=1000 columns=300
  __global__ void total(float *out, const float *in, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;  // of the row
    for (int c = 0; c < columns; c++) sum += in[row * columns + c];
    out[row] = sum;
  }

  // As total, for the launches in this file: others may launch total otherwise.
  // warpwright: shape rows=1000 columns=300
  static __global__ void total_tuned(float *out, const float *in, int rows, int columns) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;  // of the row
    for (int c = lane; c < columns; c += 32) sum += in[row * columns + c];
    for (int offset = 16; offset > 0; offset /= 2)
      sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (lane == 0)
      out[row] = sum;
  }
}

void second(float *out, const float *in, int rows, int columns) {
  rows::total_tuned<<<(rows + 255) / 256 * 32, 256>>>(out, in, rows, columns);
}

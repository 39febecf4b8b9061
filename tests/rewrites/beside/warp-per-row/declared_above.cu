// Declared, launched above its definition, and launched again below: all of that goes to the new kernel.
namespace rows {
  __global__ void total(float *out, const float *in, int rows, int columns);  // one row a thread

  void first(float *out, const float *in, int rows, int columns) {
    total<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
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
}

void second(float *out, const float *in, int rows, int columns) {
  rows::total<<<(rows + 255) / 256, 256>>>(out, in, rows, columns);
}

// Kernels that benchmarks/edit_latency.py puts into the file that it edits, beside those of csrc_samples.

constexpr int EVERYWHERE = 1;

__global__ void edited(const float* in, float* out, int width, int height) {
    __shared__ float edited_tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < width && y + j < height) edited_tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    }
    __syncthreads();
    for (int j = 0; j < 32; j += 8) {
        out[(y + j) * height + x] = edited_tile[threadIdx.x][threadIdx.y + j];
    }
}

void launch_edited(const float* in, float* out) {
    edited<<<dim3(128, 128), dim3(32, 8)>>>(in, out, 4096, 4096);
    if (cudaGetLastError() != cudaSuccess) return;
}

// Each thread keeps 8 x 8 sums in registers; a block's tile of 128 x 128 is fed 8 columns at a time.
__global__ void multiply_blocked(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float rows[8][128 + 4];
    __shared__ float columns[8][128 + 4];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const int top = blockIdx.y * 128;
    const int left = blockIdx.x * 128;
    const int load_row = thread / 2;
    const int load_column = thread % 2 * 4;
    float sums[8][8];
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            sums[i][j] = 0.0f;
        }
    }
    for (int step = 0; step < k; step += 8) {
        const float4 piece = *reinterpret_cast<const float4*>(&a[(top + load_row) * k + step + load_column]);
        rows[load_column + 0][load_row] = piece.x;
        rows[load_column + 1][load_row] = piece.y;
        rows[load_column + 2][load_row] = piece.z;
        rows[load_column + 3][load_row] = piece.w;
        const int b_row = thread / 32;
        const int b_column = thread % 32 * 4;
        const float4 other = *reinterpret_cast<const float4*>(&b[(step + b_row) * n + left + b_column]);
        *reinterpret_cast<float4*>(&columns[b_row][b_column]) = other;
        __syncthreads();
        for (int inner = 0; inner < 8; inner++) {
            float own_rows[8];
            float own_columns[8];
            for (int i = 0; i < 8; i++) {
                own_rows[i] = rows[inner][threadIdx.y * 8 + i];
                own_columns[i] = columns[inner][threadIdx.x * 8 + i];
            }
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 8; j++) {
                    sums[i][j] += own_rows[i] * own_columns[j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            const int row = top + threadIdx.y * 8 + i;
            const int column = left + threadIdx.x * 8 + j;
            if (row < m && column < n) {
                c[row * n + column] = sums[i][j];
            }
        }
    }
}

void launch_multiply(const float* a, const float* b, float* c, int m, int n, int k) {
    dim3 block(16, 16);
    dim3 grid((n + 127) / 128, (m + 127) / 128);
    multiply_blocked<<<grid, block>>>(a, b, c, m, n, k);
    if (cudaGetLastError() != cudaSuccess) return;
}

struct Particle {
    float x, y, z;
    float mass;
};

// All pairs, a tile of 256 particles at a time in shared memory.
__global__ void attract(const Particle* particles, float3* forces, int count, float softening) {
    __shared__ Particle tile[256];
    const int own = blockIdx.x * blockDim.x + threadIdx.x;
    float3 force = make_float3(0.0f, 0.0f, 0.0f);
    Particle self = {0.0f, 0.0f, 0.0f, 0.0f};
    if (own < count) {
        self = particles[own];
    }
    for (int first = 0; first < count; first += 256) {
        const int other = first + threadIdx.x;
        if (other < count) {
            tile[threadIdx.x] = particles[other];
        } else {
            tile[threadIdx.x].mass = 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 256; i++) {
            const float dx = tile[i].x - self.x;
            const float dy = tile[i].y - self.y;
            const float dz = tile[i].z - self.z;
            const float squared = dx * dx + dy * dy + dz * dz + softening;
            const float inverse = rsqrtf(squared);
            const float strength = tile[i].mass * inverse * inverse * inverse;
            force.x += dx * strength;
            force.y += dy * strength;
            force.z += dz * strength;
        }
        __syncthreads();
    }
    if (own < count) {
        forces[own] = force;
    }
}

void launch_attract(const Particle* particles, float3* forces, int count) {
    attract<<<(count + 255) / 256, 256>>>(particles, forces, count, 1e-6f);
    if (cudaGetLastError() != cudaSuccess) return;
}

// The inclusive sum of 1,024 elements per block: within warps by shuffles, then over the warps' totals.
__global__ void scan_block(const int* in, int* out, int* totals, int count) {
    __shared__ int of_warps[32];
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    int sum = at < count ? in[at] : 0;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) {
            sum += before;
        }
    }
    if (lane == 31) {
        of_warps[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? of_warps[lane] : 0;
        for (int distance = 1; distance < 32; distance *= 2) {
            const int before = __shfl_up_sync(0xffffffffu, total, distance);
            if (lane >= distance) {
                total += before;
            }
        }
        of_warps[lane] = total;
    }
    __syncthreads();
    if (warp > 0) {
        sum += of_warps[warp - 1];
    }
    if (at < count) {
        out[at] = sum;
    }
    if (threadIdx.x == blockDim.x - 1) {
        totals[blockIdx.x] = sum;
    }
}

void launch_scan(const int* in, int* out, int* totals, int count) {
    scan_block<<<(count + 1023) / 1024, 1024>>>(in, out, totals, count);
    if (cudaGetLastError() != cudaSuccess) return;
}

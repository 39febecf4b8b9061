// Whole-number arithmetic and bit operations, each with operands that reach the edges of its type.

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 8] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void bits(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i] * 2654435761u, y = b[i] * 40503u + i;
    out[8 * i + 0] = __popc(x) + __clz(y) * 100;
    out[8 * i + 1] = __brev(x);
    out[8 * i + 2] = __byte_perm(x, y, y & 0x7777);
    out[8 * i + 3] = __funnelshift_l(x, y, y & 63);
    out[8 * i + 4] = __funnelshift_rc(x, y, y & 63);
    out[8 * i + 5] = (x & y) ^ (~x | (y >> 3));
    out[8 * i + 6] = __ffs(x) + (x << (y & 31)) + (int(x) >> (y & 31));
    out[8 * i + 7] = ((x >> (y & 7)) & 0x3f) | ((y & 0xf) << 12);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 6] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void division(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i] * 1000003 - i, y = b[i] * 17 + 1;
    unsigned u = x, v = y;
    out[6 * i + 0] = x / y;
    out[6 * i + 1] = x % y;
    out[6 * i + 2] = u / v;
    out[6 * i + 3] = u % v;
    out[6 * i + 4] = x / 7 + x % 10;
    out[6 * i + 5] = u / 1000u + u % 33u;
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 6] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void wide(const long long* a, const long long* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i] * 0x9E3779B97F4A7C15ll + i, y = b[i] * 0x2545F4914F6CDD1Dll - 3 * i;
    out[6 * i + 0] = __mul64hi(x, y);
    out[6 * i + 1] = __umul64hi(x, y);
    out[6 * i + 2] = x / (y | 1);
    out[6 * i + 3] = (unsigned long long)x % (unsigned long long)(y | 1);
    out[6 * i + 4] = (x << (y & 63)) ^ (x >> (i & 63));
    out[6 * i + 5] = __popcll(x) + __clzll(y) * 100 + min(x, y) - max(x, y) + llabs(x);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 6] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void products(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i] * 0x01234567, y = b[i] * 0x00fedcba + i;
    out[6 * i + 0] = __mulhi(x, y);
    out[6 * i + 1] = __umulhi(x, y);
    out[6 * i + 2] = __mul24(x, y);
    out[6 * i + 3] = __dp4a(x, y, i);
    out[6 * i + 4] = __sad(x, y, i) + __usad(x, y, i);
    out[6 * i + 5] = __dp2a_lo(x, y, i) ^ __hadd(x, y) ^ __rhadd(x, y);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 4] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void narrow(const signed char* a, const short* b, short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    signed char x = a[i] * 19;
    short y = b[i] * 1021;
    out[4 * i + 0] = x + y;
    out[4 * i + 1] = (unsigned char)x * (unsigned short)y;
    out[4 * i + 2] = (short)(x << 3) >> 2;
    out[4 * i + 3] = y / (x | 1);
}

// warpwright: array a[n] in
// warpwright: array out[n * 2] out
// warpwright: launch grid((n + 63) / 64) block(64)
// warpwright: shape n=500
__global__ void hash(const unsigned* a, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = a[i], state = i + 1;
    for (int round = 0; round < 24; ++round) {
        h ^= h >> 16; h *= 0x7feb352du; h ^= h >> 15; h *= 0x846ca68bu; h ^= h >> 16;
        state ^= state << 13; state ^= state >> 17; state ^= state << 5;
    }
    out[2 * i] = h;
    out[2 * i + 1] = state;
}

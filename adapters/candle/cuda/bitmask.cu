// Masks on the logits of a batch. Compiled to bitmask.ptx by build-ptx; the Rust twin of every function here is
// src/scalar.rs, and cuda/host.cpp runs this very file on a CPU for the tests.
//
// All kernels: blockIdx.y is a row of the batch; index[y] says which mask it has (FREE: none, ALL: every id below
// `width`), rows[y] which row of the logits it is (y itself where `rows` is null). Masks have no bit at or beyond `width`.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define FREE 0xffffffffu
#define ALL 0xfffffffeu
#define NONE 0xffffffffu

struct Masks {
    const u32* index;
    const u32* rows;
    const u32* words;
    u32 row_words;
    u32 width;
};

// A row of logits, cut so that its middle is a whole number of aligned 16-byte vectors.
struct Cut {
    u32 head;
    u32 vectors;
    u32 tail;
};

template <typename Bits>
static __device__ Cut cut_row(const Bits* row, u32 ids) {
    const u32 lanes = 16 / sizeof(Bits);
    u32 head = (u32)(((16 - ((u64)row & 15)) & 15) / sizeof(Bits));
    if (head > ids) head = ids;
    u32 vectors = (ids - head) / lanes;
    return Cut{head, vectors, head + vectors * lanes};
}

// Bits of the `lanes` ids from `first` on, the first one lowest; other bits are 0.
static __device__ u32 keep_bits(const Masks& m, u32 slot, u32 first, u32 lanes) {
    u32 all = (1u << lanes) - 1;
    if (slot == FREE) return all;
    if (slot == ALL) {
        if (first >= m.width) return 0;
        u32 left = m.width - first;
        return left >= lanes ? all : (1u << left) - 1;
    }
    const u32* mask = m.words + (u64)slot * m.row_words;
    u32 word = first >> 5, shift = first & 31;
    u32 low = word < m.row_words ? mask[word] : 0;
    u32 high = shift + lanes > 32 && word + 1 < m.row_words ? mask[word + 1] : 0;
    return __funnelshift_r(low, high, shift) & all;
}

// What the element types are; the bits of their infinity.
template <typename K>
struct Kind;
struct F32 {};
struct F16 {};
struct B16 {};
template <>
struct Kind<F32> {
    typedef u32 Bits;
    static const u32 INFINITE = 0x7f800000u;
};
template <>
struct Kind<F16> {
    typedef u16 Bits;
    static const u32 INFINITE = 0x7c00u;
};
template <>
struct Kind<B16> {
    typedef u16 Bits;
    static const u32 INFINITE = 0x7f80u;
};

// Of a 32-bit lane of a vector: all bits of the elements to keep.
static __device__ u32 spread(u32 keep, u32 lane, u32 element_bits) {
    if (element_bits == 32) return (keep >> lane) & 1 ? 0xffffffffu : 0;
    u32 pair = keep >> (2 * lane);
    return (pair & 1 ? 0x0000ffffu : 0) | (pair & 2 ? 0xffff0000u : 0);
}

template <typename K>
static __device__ void apply_row(typename Kind<K>::Bits* logits, u64 stride, u32 ids, const Masks& m) {
    typedef typename Kind<K>::Bits Bits;
    const u32 lanes = 16 / sizeof(Bits), element_bits = 8 * sizeof(Bits), full = (1u << lanes) - 1;
    const Bits masked = (Bits)(Kind<K>::INFINITE | (1u << (element_bits - 1)));
    const u32 packed = element_bits == 32 ? (u32)masked : ((u32)masked << 16 | (u32)masked);
    u32 y = blockIdx.y, slot = m.index[y];
    if (slot == FREE || (slot == ALL && ids <= m.width)) return;
    Bits* row = logits + (u64)(m.rows ? m.rows[y] : y) * stride;
    Cut cut = cut_row(row, ids);
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    u32 edge = cut.head + (ids - cut.tail);
    for (u32 i = thread; i < edge; i += threads) {
        u32 id = i < cut.head ? i : cut.tail + (i - cut.head);
        if (!keep_bits(m, slot, id, 1)) row[id] = masked;
    }
    uint4* middle = (uint4*)(row + cut.head);
#pragma unroll 4
    for (u32 v = thread; v < cut.vectors; v += threads) {
        u32 keep = keep_bits(m, slot, cut.head + v * lanes, lanes);
        if (keep == full) continue;
        uint4 out = {packed, packed, packed, packed};
        if (keep != 0) {
            uint4 in = middle[v];
            u32 s0 = spread(keep, 0, element_bits), s1 = spread(keep, 1, element_bits);
            u32 s2 = spread(keep, 2, element_bits), s3 = spread(keep, 3, element_bits);
            out.x = (in.x & s0) | (packed & ~s0);
            out.y = (in.y & s1) | (packed & ~s1);
            out.z = (in.z & s2) | (packed & ~s2);
            out.w = (in.w & s3) | (packed & ~s3);
        }
        middle[v] = out;
    }
}

// Order of a logit as an unsigned number: not a number is 1, below -inf; 0 is for ids that are not allowed; -0 equals +0.
template <typename K>
static __device__ u32 order(u32 bits) {
    const u32 shift = 32 - 8 * sizeof(typename Kind<K>::Bits);
    const u32 magnitude = bits & (0x7fffffffu >> shift);
    if (magnitude > Kind<K>::INFINITE) return 1;
    u32 wide = magnitude << shift;
    bool negative = (bits >> (31 - shift)) & 1;
    return negative ? 0x80000000u - wide : 0x80000000u + wide;
}

// The best id so far: the largest logit, and the lowest id among equals, since ids come in ascending order.
struct Best {
    u32 order;
    u32 id;
};

template <typename K>
static __device__ void consider(Best& best, u32 bits, u32 id) {
    u32 found = order<K>(bits);
    if (found > best.order) best = Best{found, id};
}

template <typename K>
static __device__ void consider_lane(Best& best, u32 packed, u32 lane, u32 keep, u32 first) {
    const u32 element_bits = 8 * sizeof(typename Kind<K>::Bits), each = 32 / element_bits;
#pragma unroll
    for (u32 i = 0; i < each; i++) {
        u32 at = lane * each + i;
        if ((keep >> at) & 1) consider<K>(best, element_bits == 32 ? packed : (packed >> (16 * i)) & 0xffffu, first + at);
    }
}

static __device__ float half_to_float(u32 bits) {
    u32 sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 5.9604644775390625e-8f;
    return sign ? -small : small;
}

template <typename K>
static __device__ float value(u32 bits);
template <>
__device__ float value<F32>(u32 bits) { return __uint_as_float(bits); }
template <>
__device__ float value<F16>(u32 bits) { return half_to_float(bits); }
template <>
__device__ float value<B16>(u32 bits) { return __uint_as_float(bits << 16); }

// out[y] is the token (NONE where no id is allowed) and out[gridDim.y + y] the bits of its logit divided by the
// temperature. keys and done hold a zero a row before and after. Blocks have whole warps, at most 32.
template <typename K>
static __device__ void greedy_row(const typename Kind<K>::Bits* logits, u64 stride, u32 ids, const Masks& m,
                                  const float* temperatures, u32 each, u64* keys, u32* done, u32* out) {
    typedef typename Kind<K>::Bits Bits;
    const u32 lanes = 16 / sizeof(Bits);
    __shared__ u64 warps[32];
    u32 y = blockIdx.y, slot = m.index[y];
    const Bits* row = logits + (u64)(m.rows ? m.rows[y] : y) * stride;
    Cut cut = cut_row(row, ids);
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    Best local = {0, 0};
    for (u32 id = thread; id < cut.head; id += threads)
        if (keep_bits(m, slot, id, 1)) consider<K>(local, row[id], id);
    const uint4* middle = (const uint4*)(row + cut.head);
#pragma unroll 2
    for (u32 v = thread; v < cut.vectors; v += threads) {
        u32 first = cut.head + v * lanes;
        u32 keep = keep_bits(m, slot, first, lanes);
        if (keep == 0) continue;
        uint4 in = middle[v];
        consider_lane<K>(local, in.x, 0, keep, first);
        consider_lane<K>(local, in.y, 1, keep, first);
        consider_lane<K>(local, in.z, 2, keep, first);
        consider_lane<K>(local, in.w, 3, keep, first);
    }
    for (u32 id = cut.tail + thread; id < ids; id += threads)
        if (keep_bits(m, slot, id, 1)) consider<K>(local, row[id], id);
    // Across threads as one number: larger logits first, then lower ids; 0 where no id is allowed.
    u64 best = local.order == 0 ? 0 : (u64)local.order << 32 | (u64)(~local.id);
    for (u32 step = 16; step > 0; step /= 2) {
        u64 other = __shfl_down_sync(0xffffffffu, best, step);
        if (other > best) best = other;
    }
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = best;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 w = 1; w < blockDim.x >> 5; w++)
        if (warps[w] > best) best = warps[w];
    atomicMax(&keys[y], best);
    __threadfence();
    if (atomicAdd(&done[y], 1u) != gridDim.x - 1) return;
    // The last block of the row: all others have given their candidate.
    __threadfence();
    u64 found = atomicExch(&keys[y], 0ull);
    done[y] = 0;
    u32 id = ~(u32)found;
    bool any = found != 0;
    out[y] = any ? id : NONE;
    float score = any ? value<K>(row[id]) / temperatures[y * each] : __uint_as_float(0xff800000u);
    // One bit pattern for all that is not a number, whatever the processor makes of it.
    out[gridDim.y + y] = score != score ? 0x7fc00000u : __float_as_uint(score);
}

#define KERNELS(NAME, K)                                                                                             \
    extern "C" __global__ void louver_apply_##NAME(u64 logits, u64 stride, u32 ids, u64 index, u64 rows, u64 words, \
                                                   u32 row_words, u32 width) {                                      \
        Masks m = {(const u32*)index, (const u32*)rows, (const u32*)words, row_words, width};                       \
        apply_row<K>((Kind<K>::Bits*)logits, stride, ids, m);                                                       \
    }                                                                                                                \
    extern "C" __global__ void louver_greedy_##NAME(u64 logits, u64 stride, u32 ids, u64 index, u64 rows, u64 words, \
                                                    u32 row_words, u32 width, u64 temperatures, u32 each, u64 keys, \
                                                    u64 done, u64 out) {                                            \
        Masks m = {(const u32*)index, (const u32*)rows, (const u32*)words, row_words, width};                       \
        greedy_row<K>((const Kind<K>::Bits*)logits, stride, ids, m, (const float*)temperatures, each, (u64*)keys,   \
                      (u32*)done, (u32*)out);                                                                       \
    }

KERNELS(f32, F32)
KERNELS(f16, F16)
KERNELS(bf16, B16)

// Emulates a GPU for bitmask.cu on a CPU, for machines without a GPU. tests/kernels.rs compiles
// this file with the host's compiler, writes cases to standard input and compares the output with
// the scalar reference in Rust. Blocks run sequentially. The threads of a block are host threads,
// because they synchronise at barriers.

#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static

struct Dim {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static Dim gridDim, blockDim, blockIdx;
static thread_local Dim threadIdx;
static std::barrier<>* block_barrier;
static unsigned long long shuffle_values[1024];

static void __syncthreads() { block_barrier->arrive_and_wait(); }
static void __threadfence() {}

static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31));
}

static unsigned long long __shfl_down_sync(unsigned, unsigned long long value, unsigned step) {
    shuffle_values[threadIdx.x] = value;
    __syncthreads();
    unsigned lane = threadIdx.x & 31;
    unsigned long long other = lane + step < 32 ? shuffle_values[threadIdx.x + step] : value;
    __syncthreads();
    return other;
}

static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}

// Only the first thread of a block uses atomics and blocks run sequentially, so plain accesses do.
template <typename T>
static T atomicMax(T* address, T value) {
    T before = *address;
    if (value > before) *address = value;
    return before;
}
template <typename T>
static T atomicAdd(T* address, T value) {
    T before = *address;
    *address += value;
    return before;
}
template <typename T>
static T atomicExch(T* address, T value) {
    T before = *address;
    *address = value;
    return before;
}

#include "bitmask.cu"

static void launch(bool barriers, const std::function<void()>& kernel) {
    for (unsigned y = 0; y < gridDim.y; y++)
        for (unsigned x = 0; x < gridDim.x; x++) {
            blockIdx = Dim{x, y};
            if (!barriers) {
                for (unsigned t = 0; t < blockDim.x; t++) {
                    threadIdx = Dim{t, 0};
                    kernel();
                }
                continue;
            }
            std::barrier<> barrier(blockDim.x);
            block_barrier = &barrier;
            std::vector<std::thread> threads;
            for (unsigned t = 0; t < blockDim.x; t++)
                threads.emplace_back([&, t] {
                    threadIdx = Dim{t, 0};
                    kernel();
                });
            for (auto& thread : threads) thread.join();
        }
}

static bool read(void* target, size_t bytes) {
    return bytes == 0 || fread(target, 1, bytes, stdin) == bytes;
}

template <typename T>
static std::vector<T> read_list(u32 count) {
    std::vector<T> list(count);
    if (!read(list.data(), count * sizeof(T))) exit(2);
    return list;
}

// The header of a case. The lists follow, in the order in which `main` reads them.
struct Case {
    u32 greedy, type, stride, ids, rows, blocks, threads, skew;
    u32 row_words, width, elements, words, named, temperatures;
};

int main() {
    Case c;
    while (read(&c, sizeof c)) {
        u32 size = c.type == 0 ? 4 : 2;
        auto values = read_list<unsigned char>(c.elements * size);
        auto index = read_list<u32>(c.rows);
        auto words = read_list<u32>(c.words);
        auto named = read_list<u32>(c.named);
        auto temperatures = read_list<float>(c.temperatures);
        // Rows begin `skew` elements after a 16-byte boundary.
        std::vector<uint4> buffer(((c.elements + c.skew) * size + 15) / 16);
        unsigned char* begin = (unsigned char*)buffer.data() + c.skew * size;
        memcpy(begin, values.data(), c.elements * size);
        std::vector<u64> keys(c.rows);
        std::vector<u32> done(c.rows), out(2 * c.rows);
        gridDim = Dim{c.blocks, c.rows};
        blockDim = Dim{c.threads, 1};
        u64 logits = (u64)begin, rows = c.named ? (u64)named.data() : 0;
        u64 i = (u64)index.data(), w = (u64)words.data(), t = (u64)temperatures.data();
        u64 k = (u64)keys.data(), d = (u64)done.data(), o = (u64)out.data();
        u32 per_row = c.temperatures > 1;
        auto apply = c.type == 0   ? louver_apply_f32
                     : c.type == 1 ? louver_apply_f16
                                   : louver_apply_bf16;
        auto greedy = c.type == 0   ? louver_greedy_f32
                      : c.type == 1 ? louver_greedy_f16
                                    : louver_greedy_bf16;
        launch(c.greedy, [&] {
            if (c.greedy)
                greedy(logits, c.stride, c.ids, i, rows, w, c.row_words, c.width, t, per_row, k, d,
                       o);
            else
                apply(logits, c.stride, c.ids, i, rows, w, c.row_words, c.width);
        });
        // Greedy kernels must reset their scratch memory.
        u32 not_reset = 0;
        for (u32 y = 0; y < c.rows; y++) not_reset += keys[y] != 0 || done[y] != 0;
        fwrite(begin, 1, c.elements * size, stdout);
        fwrite(out.data(), 4, 2 * c.rows, stdout);
        fwrite(&not_reset, 4, 1, stdout);
    }
    fflush(stdout);
}

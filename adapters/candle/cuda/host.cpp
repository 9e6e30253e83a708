// Runs bitmask.cu on a CPU, thread by thread, for machines without a GPU: tests/kernels.rs compiles this with the host's
// compiler, writes cases to standard input and compares what comes back with the Rust twin. Blocks run one after the
// other; the threads of a block are threads, since they meet at barriers.

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
static std::barrier<>* meeting;
static unsigned long long exchanged[1024];

static void __syncthreads() { meeting->arrive_and_wait(); }
static void __threadfence() {}

static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31));
}

static unsigned long long __shfl_down_sync(unsigned, unsigned long long value, unsigned step) {
    exchanged[threadIdx.x] = value;
    __syncthreads();
    unsigned lane = threadIdx.x & 31;
    unsigned long long other = lane + step < 32 ? exchanged[threadIdx.x + step] : value;
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

// Only the first thread of a block comes here, and blocks run one after the other.
template <typename T>
static T atomicMax(T* at, T value) {
    T before = *at;
    if (value > before) *at = value;
    return before;
}
template <typename T>
static T atomicAdd(T* at, T value) {
    T before = *at;
    *at += value;
    return before;
}
template <typename T>
static T atomicExch(T* at, T value) {
    T before = *at;
    *at = value;
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
            std::barrier<> all(blockDim.x);
            meeting = &all;
            std::vector<std::thread> threads;
            for (unsigned t = 0; t < blockDim.x; t++)
                threads.emplace_back([&, t] {
                    threadIdx = Dim{t, 0};
                    kernel();
                });
            for (auto& thread : threads) thread.join();
        }
}

static bool read(void* to, size_t bytes) { return bytes == 0 || fread(to, 1, bytes, stdin) == bytes; }

template <typename T>
static std::vector<T> read_list(u32 count) {
    std::vector<T> list(count);
    if (!read(list.data(), count * sizeof(T))) exit(2);
    return list;
}

// What a case begins with; the lists follow in this order.
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
        std::vector<uint4> room(((c.elements + c.skew) * size + 15) / 16);
        unsigned char* begin = (unsigned char*)room.data() + c.skew * size;
        memcpy(begin, values.data(), c.elements * size);
        std::vector<u64> keys(c.rows);
        std::vector<u32> done(c.rows), out(2 * c.rows);
        gridDim = Dim{c.blocks, c.rows};
        blockDim = Dim{c.threads, 1};
        u64 logits = (u64)begin, rows = c.named ? (u64)named.data() : 0;
        u64 i = (u64)index.data(), w = (u64)words.data(), t = (u64)temperatures.data();
        u64 k = (u64)keys.data(), d = (u64)done.data(), o = (u64)out.data();
        u32 each = c.temperatures > 1;
        auto apply = c.type == 0 ? louver_apply_f32 : c.type == 1 ? louver_apply_f16 : louver_apply_bf16;
        auto greedy = c.type == 0 ? louver_greedy_f32 : c.type == 1 ? louver_greedy_f16 : louver_greedy_bf16;
        launch(c.greedy, [&] {
            if (c.greedy)
                greedy(logits, c.stride, c.ids, i, rows, w, c.row_words, c.width, t, each, k, d, o);
            else
                apply(logits, c.stride, c.ids, i, rows, w, c.row_words, c.width);
        });
        u32 left = 0;
        for (u32 y = 0; y < c.rows; y++) left += keys[y] != 0 || done[y] != 0;
        fwrite(begin, 1, c.elements * size, stdout);
        fwrite(out.data(), 4, 2 * c.rows, stdout);
        fwrite(&left, 4, 1, stdout);
    }
    fflush(stdout);
}

// One value everywhere: eight bytes again and again, in vectors of 16 where the address allows.
#include "prelude.cuh"

extern "C" __global__ void __launch_bounds__(256) fill(u8* out, u64 bytes, u64 pattern) {
    const u64 head = (u64)(-(i64)(u64)out & 15), first = head < bytes ? head : bytes;
    const u64 vectors = (bytes - first) / 16, tail = first + vectors * 16;
    const u64 thread = (u64)blockIdx.x * 256 + threadIdx.x, step = (u64)gridDim.x * 256;
    // The pattern as it goes on at the first vector.
    const u32 turn = (u32)(first & 7) * 8;
    const u64 turned = turn == 0 ? pattern : pattern >> turn | pattern << (64 - turn);
    const uint4 word = make_uint4((u32)turned, (u32)(turned >> 32), (u32)turned, (u32)(turned >> 32));
    for (u64 i = thread; i < vectors; i += step) of_store_word(out + first + i * 16, word);
    if (thread < 16 && thread < first) out[thread] = (u8)(pattern >> (thread & 7) * 8);
    if (thread < 16 && tail + thread < bytes) out[tail + thread] = (u8)(pattern >> ((tail + thread) & 7) * 8);
}

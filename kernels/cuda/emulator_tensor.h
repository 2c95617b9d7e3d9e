// Tensor cores and asynchronous copies for emulator.h: what prelude.cuh has as PTX on a GPU.
#pragma once

// ---- tensor cores and copies ----------------------------------------------------------------------------------------

OF_EMU_INLINE float of_emu_bits(unsigned u) { return __builtin_bit_cast(float, u); }
static inline float of_emu_bf16(unsigned h) { return of_emu_bits(h << 16); }
static inline float of_emu_f16(unsigned h) {
    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) return of_emu_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 5.9604644775390625e-8f;
    return of_emu_bits(sign | (exponent + 112) << 23 | fraction << 13);
}
// mma.sync.aligned.m16n8k16.row.col with f32 sums. With g = lane / 4 and t = lane % 4, register r of A holds row
// g + 8 (r & 1), columns 2t + 8 (r >> 1) and the next; register r of B rows 2t + 8r and the next, column g; element i of C
// and D row g + 8 (i >> 1), column 2t + (i & 1).
template <float (*Half)(unsigned)> struct of_emu_mma {
    float d[4];
    unsigned a[4], b[2];
    float c[4];
    static void combine(void** lanes, unsigned mask) {
        if (mask != 0xffffffffu) of_emu_fail(OF_EMU_LAUNCH_FAILED, "mma.sync needs all 32 lanes of a warp");
        float a[16][16], b[16][8];
        OF_EMU_LANES {
            const of_emu_mma* me = (of_emu_mma*)lanes[lane];
            unsigned g = lane / 4, t = lane % 4;
            for (unsigned r = 0; r < 4; r++)
                for (unsigned half = 0; half < 2; half++)
                    a[g + 8 * (r & 1)][2 * t + 8 * (r >> 1) + half] = Half(me->a[r] >> 16 * half & 0xffffu);
            for (unsigned r = 0; r < 2; r++)
                for (unsigned half = 0; half < 2; half++) b[2 * t + 8 * r + half][g] = Half(me->b[r] >> 16 * half & 0xffffu);
        }
        OF_EMU_LANES {
            of_emu_mma* me = (of_emu_mma*)lanes[lane];
            for (unsigned i = 0; i < 4; i++) {
                unsigned row = lane / 4 + 8 * (i >> 1), column = 2 * (lane % 4) + (i & 1);
                float sum = me->c[i];
                for (unsigned k = 0; k < 16; k++) sum += a[row][k] * b[k][column];
                me->d[i] = sum;
            }
        }
    }
};
template <float (*Half)(unsigned)>
OF_EMU_INLINE void of_emu_mma_run(float d[4], const unsigned a[4], const unsigned b[2], const float c[4]) {
    of_emu_mma<Half> mine;
    memcpy(mine.a, a, 16);
    memcpy(mine.b, b, 8);
    memcpy(mine.c, c, 16);
    of_emu_collective(of_emu_mma<Half>::combine, 0xffffffffu, &mine);
    memcpy(d, mine.d, 16);
}
OF_EMU_INLINE void of_emu_mma_m16n8k16_f32_bf16(float d[4], const unsigned a[4], const unsigned b[2], const float c[4]) {
    of_emu_mma_run<of_emu_bf16>(d, a, b, c);
}
OF_EMU_INLINE void of_emu_mma_m16n8k16_f32_f16(float d[4], const unsigned a[4], const unsigned b[2], const float c[4]) {
    of_emu_mma_run<of_emu_f16>(d, a, b, c);
}

// ldmatrix: lane i of the first 8 x Count lanes names row i % 8 of 8x8 matrix i / 8; lane l gets in register m the elements
// (l / 4, 2 (l % 4)) and the next of matrix m, or, transposed, (2 (l % 4), l / 4) and the one below.
template <int Count, bool Transposed> struct of_emu_ldmatrix {
    const void* row;
    unsigned r[4];
    static void combine(void** lanes, unsigned mask) {
        if (mask != 0xffffffffu) of_emu_fail(OF_EMU_LAUNCH_FAILED, "ldmatrix needs all 32 lanes of a warp");
        for (unsigned m = 0; m < Count; m++) {
            const unsigned short* rows[8];
            for (unsigned i = 0; i < 8; i++) {
                rows[i] = (const unsigned short*)((of_emu_ldmatrix*)lanes[8 * m + i])->row;
                if ((size_t)rows[i] & 15) of_emu_fail(OF_EMU_MISALIGNED, "ldmatrix needs rows that are aligned to 16 bytes");
            }
            OF_EMU_LANES {
                unsigned i = lane / 4, j = 2 * (lane % 4);
                unsigned low = Transposed ? rows[j][i] : rows[i][j], high = Transposed ? rows[j + 1][i] : rows[i][j + 1];
                ((of_emu_ldmatrix*)lanes[lane])->r[m] = high << 16 | low;
            }
        }
    }
};
template <int Count, bool Transposed> OF_EMU_INLINE void of_emu_ldmatrix_run(unsigned* r, const void* row) {
    of_emu_ldmatrix<Count, Transposed> mine;
    mine.row = row;
    of_emu_collective(of_emu_ldmatrix<Count, Transposed>::combine, 0xffffffffu, &mine);
    for (int i = 0; i < Count; i++) r[i] = mine.r[i];
}
OF_EMU_INLINE void of_emu_ldmatrix_x1(unsigned r[1], const void* row) { of_emu_ldmatrix_run<1, false>(r, row); }
OF_EMU_INLINE void of_emu_ldmatrix_x2(unsigned r[2], const void* row) { of_emu_ldmatrix_run<2, false>(r, row); }
OF_EMU_INLINE void of_emu_ldmatrix_x4(unsigned r[4], const void* row) { of_emu_ldmatrix_run<4, false>(r, row); }
OF_EMU_INLINE void of_emu_ldmatrix_x1_trans(unsigned r[1], const void* row) { of_emu_ldmatrix_run<1, true>(r, row); }
OF_EMU_INLINE void of_emu_ldmatrix_x2_trans(unsigned r[2], const void* row) { of_emu_ldmatrix_run<2, true>(r, row); }
OF_EMU_INLINE void of_emu_ldmatrix_x4_trans(unsigned r[4], const void* row) { of_emu_ldmatrix_run<4, true>(r, row); }

// cp.async: until its group is waited for, the place has garbage (NaN), so that a wait that lacks shows, and so does a
// copy into what is still being read. Zeros where not valid.
OF_EMU_INLINE of_emu_copies* of_emu_my_copies(of_emu_state* s) {
    of_emu_copies* all = (of_emu_copies*)((char*)s + OF_EMU_COPIES_AT);
    if (!s->copies_used) {
        for (unsigned t = 0; t < s->count; t++) all[t].count = all[t].group = 0;
        s->copies_used = 1;
    }
    return &all[s->current];
}
static inline void of_emu_copy_async(void* to, const void* from, unsigned bytes, bool valid) {
    if (((size_t)to | (valid ? (size_t)from : 0)) & (bytes - 1))
        of_emu_fail(OF_EMU_MISALIGNED, "cp.async needs addresses that are aligned to what it copies");
    of_emu_copies* mine = of_emu_my_copies(of_emu_here());
    if (mine->count == OF_EMU_COPIES) of_emu_fail(OF_EMU_LAUNCH_FAILED, "the emulator cannot hold that many cp.async of a thread");
    memset(to, 0xff, bytes);
    mine->at[mine->count++] = {to, valid ? from : 0, bytes, mine->group};
}
OF_EMU_INLINE void of_emu_copy_commit() { of_emu_my_copies(of_emu_here())->group++; }
// Does the copies of all groups but the latest `left`; those that were not committed stay under way.
static inline void of_emu_copy_wait(unsigned left) {
    of_emu_copies* mine = of_emu_my_copies(of_emu_here());
    unsigned kept = 0;
    for (unsigned i = 0; i < mine->count; i++) {
        of_emu_copy c = mine->at[i];
        if (c.group + left >= mine->group) mine->at[kept++] = c;
        else if (c.from) memcpy(c.to, c.from, c.bytes);
        else memset(c.to, 0, c.bytes);
    }
    mine->count = kept;
}
// Done at once: for code that does not say when it waits.
OF_EMU_INLINE void of_emu_copy16(void* to, const void* from, bool valid) {
    if (((size_t)to | (size_t)from) & 15)
        of_emu_fail(OF_EMU_MISALIGNED, "cp.async of 16 bytes needs addresses that are aligned to 16 bytes");
    if (valid) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
template <typename T> OF_EMU_INLINE size_t __cvta_generic_to_shared(const T* p) { return (size_t)p; }

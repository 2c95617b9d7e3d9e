// CUDA C++ as plain C++17 for g++ on a machine without a GPU: the kernel files of this folder, unchanged, become a shared
// object that the emulated driver (`emulator/driver`) loads and runs. It comes before the program's text.
//
// A block runs on one OS thread; each of its threads is a fiber. A fiber that ends without having waited hands its stack
// to the next thread, so a kernel without barriers never switches. Barriers and warp collectives are rendezvous: the last
// to arrive works out what everybody gets. When nobody can run and not all have ended the block is stuck, and the launch
// fails with a text that says who waits for what, where a GPU would hang or be wrong.
//
// No header is included, so that a program compiles in a few hundred milliseconds; all names start with `of_emu_` or are
// CUDA's. Sections: words, vectors, state and fibers, barriers, warp collectives, tensor cores, atomics, mathematics, launch.
#pragma once

#define OF_EMU_INLINE static inline __attribute__((always_inline))
#define OF_EMU_APART static __attribute__((noipa))

// ---- words of the language ------------------------------------------------------------------------------------------

// `__global__` is spelled OF_EMU_GLOBAL and `__launch_bounds__` OF_EMU_BOUNDS while the program is preprocessed, so that
// the driver finds the kernels in what is left; then both vanish.
#ifndef OF_EMU_KEEP_WORDS
#define __global__
#define __launch_bounds__(...)
#else
#define __global__ OF_EMU_GLOBAL
#define __launch_bounds__(...) OF_EMU_BOUNDS((__VA_ARGS__))
#endif
#define __device__
#define __host__
// A block's fibers share one OS thread, so what is local to the thread is shared by the block.
#define __shared__ static thread_local
#define __constant__
#define __grid_constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ 900
#define __CUDACC_RTC__ 1
#define assert(condition) ((condition) ? (void)0 : of_emu_fail(OF_EMU_ASSERT, "assertion failed: " #condition))

typedef unsigned long size_t;
extern "C" {
int printf(const char*, ...);
int snprintf(char*, size_t, const char*, ...);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

// ---- vectors --------------------------------------------------------------------------------------------------------

#define OF_EMU_VECTORS(type, name, align2, align4)                                                                     \
    struct name##1 { type x; };                                                                                        \
    struct __attribute__((aligned(align2))) name##2 { type x, y; };                                                    \
    struct name##3 { type x, y, z; };                                                                                  \
    struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };                                              \
    OF_EMU_INLINE name##1 make_##name##1(type x) { return {x}; }                                                       \
    OF_EMU_INLINE name##2 make_##name##2(type x, type y) { return {x, y}; }                                            \
    OF_EMU_INLINE name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                 \
    OF_EMU_INLINE name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
OF_EMU_VECTORS(signed char, char, 2, 4)
OF_EMU_VECTORS(unsigned char, uchar, 2, 4)
OF_EMU_VECTORS(short, short, 4, 8)
OF_EMU_VECTORS(unsigned short, ushort, 4, 8)
OF_EMU_VECTORS(int, int, 8, 16)
OF_EMU_VECTORS(unsigned, uint, 8, 16)
OF_EMU_VECTORS(long, long, 16, 16)
OF_EMU_VECTORS(unsigned long, ulong, 16, 16)
OF_EMU_VECTORS(long long, longlong, 16, 16)
OF_EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
OF_EMU_VECTORS(float, float, 8, 16)
OF_EMU_VECTORS(double, double, 16, 16)
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ---- state and fibers -----------------------------------------------------------------------------------------------

// CUresult values that a launch may end with.
enum { OF_EMU_ILLEGAL_ADDRESS = 700, OF_EMU_ASSERT = 710, OF_EMU_MISALIGNED = 716, OF_EMU_LAUNCH_FAILED = 719 };

// The layout of an arena, one per OS thread that runs kernels, aligned to its size so that a fiber finds it from its
// stack pointer. Stacks are not a power of two apart: equal variables of many fibers would fall in one cache set.
#define OF_EMU_ARENA (128ul << 20)
#define OF_EMU_SHARED_AT (512ul << 10)
#define OF_EMU_STACKS_AT (1ul << 20)
#define OF_EMU_STACK (98304ul + 192)
#define OF_EMU_COPIES_AT (OF_EMU_STACKS_AT + 1024 * OF_EMU_STACK)
#define OF_EMU_CANARY 0x0f10c0de5afe57acul
#define OF_EMU_PENDING 8

typedef void (*of_emu_combine)(void** lanes, unsigned mask);
// A warp collective some of whose lanes have arrived.
struct of_emu_pending {
    of_emu_combine combine;
    unsigned mask, arrived;
    void* lanes[32];
};
struct of_emu_warp {
    unsigned exists, ended, ready, at_barrier;
    of_emu_pending pending[OF_EMU_PENDING];
};
struct of_emu_thread {
    void* sp;
    uint3 index;
};
// Asynchronous copies of one thread that are under way, oldest first, and the number of its open group.
#define OF_EMU_COPIES 256
struct of_emu_copy {
    void* to;
    const void* from;
    unsigned bytes, group;
};
struct of_emu_copies {
    unsigned count, group;
    of_emu_copy at[OF_EMU_COPIES];
};
// What the driver passes to `of_emu_run`; emulator/driver/src/driver/launch.rs has the same struct.
struct of_emu_launch {
    void* arena;
    unsigned grid[3], block[3];
    unsigned shared, order;
    char* error;
    size_t error_size;
    void (*fault)(void);
    void* statics; // the __shared__ variables of this program on this thread, and their size; null if not known
    size_t statics_size;
};
struct of_emu_state {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    unsigned current, next, count, alive, workers, ready_warps, order;
    unsigned copies_used;
    unsigned barrier_waiting, barrier_kind, barrier_sum, barrier_result;
    uint3 next_index;
    int code;
    void (*call)(void**);
    void** params;
    void* host_sp;
    char* error;
    size_t error_size;
    of_emu_thread threads[1024];
    of_emu_warp warps[32];
};
static_assert(sizeof(of_emu_state) <= OF_EMU_SHARED_AT, "the state must fit before shared memory");
static_assert(OF_EMU_COPIES_AT + 1024 * sizeof(of_emu_copies) <= OF_EMU_ARENA, "all must fit in the arena");

#if defined(__x86_64__)
OF_EMU_INLINE char* of_emu_stack_pointer() {
    char* sp;
    asm("mov %%rsp, %0" : "=r"(sp)); // not volatile: the arena of a fiber never changes
    return sp;
}
// Saves the callee-saved registers and the stack pointer, and goes on where `to` was saved.
__attribute__((naked, noipa)) static void of_emu_switch(void** save, void* to) {
    asm volatile("push %%rbp; push %%rbx; push %%r12; push %%r13; push %%r14; push %%r15\n"
                 "mov %%rsp, (%%rdi); mov %%rsi, %%rsp\n"
                 "pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbx; pop %%rbp; ret" ::: "memory");
}
OF_EMU_INLINE void* of_emu_new_stack(char* top, void (*entry)(void)) {
    void** sp = (void**)((size_t)top & ~15ul);
    *--sp = 0; // where the return address of `entry` would be: its stack is then aligned as after a call
    *--sp = (void*)entry;
    for (int i = 0; i < 6; i++) *--sp = 0;
    return sp;
}
#elif defined(__aarch64__)
OF_EMU_INLINE char* of_emu_stack_pointer() { return (char*)__builtin_frame_address(0); }
asm(".text\n.p2align 2\nof_emu_switch_asm:\n"
    "sub sp, sp, #176\n"
    "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #176\nret\n");
extern "C" void of_emu_switch_asm(void** save, void* to);
OF_EMU_APART void of_emu_switch(void** save, void* to) { of_emu_switch_asm(save, to); }
OF_EMU_INLINE void* of_emu_new_stack(char* top, void (*entry)(void)) {
    char* sp = (char*)(((size_t)top & ~15ul) - 176);
    memset(sp, 0, 176);
    *(void**)(sp + 88) = (void*)entry;
    return sp;
}
#else
#error "the CUDA emulator knows how to switch fibers on x86-64 and aarch64 only"
#endif

OF_EMU_INLINE of_emu_state* of_emu_here() { return (of_emu_state*)((size_t)of_emu_stack_pointer() & ~(OF_EMU_ARENA - 1)); }
OF_EMU_INLINE void* of_emu_dynamic_shared() { return (char*)of_emu_here() + OF_EMU_SHARED_AT; }
#define threadIdx (of_emu_here()->thread)
#define blockIdx (of_emu_here()->block)
#define blockDim (of_emu_here()->block_dim)
#define gridDim (of_emu_here()->grid_dim)
static constexpr int warpSize = 32;

// Ends the launch with `code` and a text that names the thread; the other fibers are left where they are.
OF_EMU_APART void of_emu_fail(int code, const char* text) {
    of_emu_state* s = of_emu_here();
    s->code = code;
    snprintf(s->error, s->error_size, "%s (block %u,%u,%u thread %u,%u,%u)", text, s->block.x, s->block.y, s->block.z,
             s->thread.x, s->thread.y, s->thread.z);
    void* dead;
    of_emu_switch(&dead, s->host_sp);
    __builtin_unreachable();
}
// Where the driver's signal handler lets a fiber go on that touched memory it may not.
OF_EMU_APART void of_emu_fault() { of_emu_fail(OF_EMU_ILLEGAL_ADDRESS, "the kernel touched memory that is not mapped"); }

OF_EMU_APART void of_emu_stuck(of_emu_state* s) {
    char text[400];
    unsigned barrier = 0, collective = 0, first = ~0u;
    const of_emu_pending* at = 0;
    for (unsigned w = 0; w < (s->count + 31) / 32; w++) {
        barrier += __builtin_popcount(s->warps[w].at_barrier);
        for (int i = 0; i < OF_EMU_PENDING; i++) {
            const of_emu_pending* p = &s->warps[w].pending[i];
            collective += __builtin_popcount(p->arrived);
            if (p->arrived && !at) at = p, first = w;
        }
    }
    int n = snprintf(text, sizeof text, "the block is stuck: %u threads wait at __syncthreads, %u in warp collectives, %u have ended",
                     barrier, collective, s->count - s->alive);
    if (at)
        snprintf(text + n, sizeof text - n, "; in warp %u lanes %08x arrived of mask %08x, lanes %08x of the warp have ended",
                 first, at->arrived, at->mask, s->warps[first].ended);
    of_emu_fail(OF_EMU_LAUNCH_FAILED, text);
}

static void of_emu_fiber();
OF_EMU_INLINE char* of_emu_slot(of_emu_state* s, unsigned worker) { return (char*)s + OF_EMU_STACKS_AT + worker * OF_EMU_STACK; }
// A new fiber for the threads that have not begun.
OF_EMU_INLINE void* of_emu_new_worker(of_emu_state* s) {
    char* low = of_emu_slot(s, s->workers++);
    *(size_t*)low = OF_EMU_CANARY;
    return of_emu_new_stack(low + OF_EMU_STACK, of_emu_fiber);
}
OF_EMU_INLINE void* of_emu_resume(of_emu_state* s, unsigned w) {
    unsigned ready = s->warps[w].ready;
    unsigned lane = s->order & 1 ? 31 - __builtin_clz(ready) : __builtin_ctz(ready);
    s->warps[w].ready = ready & ~(1u << lane);
    if (!s->warps[w].ready) s->ready_warps &= ~(1u << w);
    unsigned t = w * 32 + lane;
    s->current = t;
    s->thread = s->threads[t].index;
    return s->threads[t].sp;
}
// Where to go on: the same warp, else a thread that has not begun, else another warp; `order` turns the choices round.
OF_EMU_INLINE void* of_emu_next(of_emu_state* s, unsigned warp) {
    if (s->order & 2) {
        if (s->next < s->count) return of_emu_new_worker(s);
        if (s->ready_warps) return of_emu_resume(s, 31 - __builtin_clz(s->ready_warps));
        return 0;
    }
    if (s->warps[warp].ready) return of_emu_resume(s, warp);
    if (s->next < s->count) return of_emu_new_worker(s);
    if (s->ready_warps) return of_emu_resume(s, __builtin_ctz(s->ready_warps));
    return 0;
}
// The current thread has said what it waits for; returns when somebody made it ready.
OF_EMU_APART void of_emu_wait(of_emu_state* s) {
    unsigned t = s->current;
    void* to = of_emu_next(s, t / 32);
    if (!to) of_emu_stuck(s);
    of_emu_switch(&s->threads[t].sp, to);
}

// ---- barriers -------------------------------------------------------------------------------------------------------

OF_EMU_INLINE void of_emu_release(of_emu_state* s, unsigned self) {
    s->barrier_result = s->barrier_sum;
    s->barrier_waiting = s->barrier_sum = 0;
    for (unsigned w = 0; w * 32 < s->count; w++) {
        unsigned waiting = s->warps[w].at_barrier;
        s->warps[w].at_barrier = 0;
        if (self / 32 == w) waiting &= ~(1u << self % 32);
        s->warps[w].ready |= waiting;
        if (s->warps[w].ready) s->ready_warps |= 1u << w;
    }
}
// A barrier of the whole block; threads that have ended count as arrived, as on the GPU. Returns the sum of `value`.
OF_EMU_APART unsigned of_emu_barrier(unsigned kind, unsigned value) {
    of_emu_state* s = of_emu_here();
    if (s->barrier_waiting && s->barrier_kind != kind)
        of_emu_fail(OF_EMU_LAUNCH_FAILED, "threads of one block wait at different kinds of __syncthreads");
    s->barrier_kind = kind;
    s->barrier_sum += value;
    s->warps[s->current / 32].at_barrier |= 1u << s->current % 32;
    if (++s->barrier_waiting == s->alive)
        of_emu_release(s, s->current);
    else
        of_emu_wait(s);
    return s->barrier_result;
}
OF_EMU_INLINE void __syncthreads() { of_emu_barrier(0, 0); }
OF_EMU_INLINE int __syncthreads_count(int p) { return (int)of_emu_barrier(1, p != 0); }
OF_EMU_INLINE int __syncthreads_or(int p) { return of_emu_barrier(2, p != 0) != 0; }
OF_EMU_INLINE int __syncthreads_and(int p) { return of_emu_barrier(3, p == 0) == 0; }
// Fibers see each other's writes in program order; between blocks a full fence.
OF_EMU_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OF_EMU_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OF_EMU_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// What one thread does: begins threads until none is left, then leaves the stack for good.
static void of_emu_fiber() {
    of_emu_state* s = of_emu_here();
    unsigned worker = s->workers - 1;
    for (;;) {
        unsigned t = s->current = s->next++;
        s->thread = s->threads[t].index = s->next_index;
        if (++s->next_index.x == s->block_dim.x) {
            s->next_index.x = 0;
            if (++s->next_index.y == s->block_dim.y) s->next_index.y = 0, s->next_index.z++;
        }
        s->call(s->params);
        t = s->current;
        if (*(volatile size_t*)of_emu_slot(s, worker) != OF_EMU_CANARY)
            of_emu_fail(OF_EMU_LAUNCH_FAILED, "a thread used more stack than the emulator has");
        s->warps[t / 32].ended |= 1u << t % 32;
        if (--s->alive == s->barrier_waiting && s->alive) of_emu_release(s, ~0u);
        if (!(s->order & 2) && s->warps[t / 32].ready) {
            // Lanes of this warp first, so that a warp's data stays in cache.
        } else if (s->next < s->count) {
            continue;
        }
        void* to = s->alive ? of_emu_next(s, t / 32) : s->host_sp;
        if (!to) of_emu_stuck(s);
        void* dead;
        of_emu_switch(&dead, to);
    }
}

// ---- warp collectives -----------------------------------------------------------------------------------------------

// The calling lane arrives at `combine` with the lanes of `mask`; the last one runs it over what all brought. Lanes that
// the block never had count for nothing; lanes that have ended leave the warp stuck, as CUDA forbids naming them.
OF_EMU_APART void of_emu_collective(of_emu_combine combine, unsigned mask, void* mine) {
    of_emu_state* s = of_emu_here();
    unsigned w = s->current / 32, bit = 1u << s->current % 32;
    of_emu_warp* warp = &s->warps[w];
    if (!(mask & bit)) of_emu_fail(OF_EMU_LAUNCH_FAILED, "a lane called a warp collective with a mask that it is not in");
    mask &= warp->exists;
    of_emu_pending *p = 0, *empty = 0;
    for (int i = 0; i < OF_EMU_PENDING && !p; i++) {
        of_emu_pending* at = &warp->pending[i];
        if (!at->arrived) {
            if (!empty) empty = at;
        } else if (at->mask == mask) {
            p = at;
        } else if (at->mask & bit) {
            of_emu_fail(OF_EMU_LAUNCH_FAILED, "lanes of one warp meet in collectives with masks that overlap");
        }
    }
    if (!p) {
        if (!(p = empty)) of_emu_fail(OF_EMU_LAUNCH_FAILED, "the emulator cannot hold that many warp collectives at once");
        p->combine = combine;
        p->mask = mask;
    } else if (p->combine != combine) {
        of_emu_fail(OF_EMU_LAUNCH_FAILED, "lanes of one warp meet in different collectives (or value types)");
    }
    p->lanes[s->current % 32] = mine;
    p->arrived |= bit;
    if (p->arrived != mask) return of_emu_wait(s);
    combine(p->lanes, mask);
    p->arrived = 0;
    if (mask & ~bit) {
        warp->ready |= mask & ~bit;
        s->ready_warps |= 1u << w;
    }
}
OF_EMU_INLINE unsigned of_emu_lane() { return of_emu_here()->current % 32; }
// The lanes that have not ended: an upper bound of what a GPU would say in divergent code.
OF_EMU_INLINE unsigned __activemask() {
    of_emu_warp* w = &of_emu_here()->warps[of_emu_here()->current / 32];
    return w->exists & ~w->ended;
}

#define OF_EMU_LANES for (unsigned lane = 0; lane < 32; lane++) if (mask >> lane & 1)

static void of_emu_combine_sync(void**, unsigned) {}
OF_EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { of_emu_collective(of_emu_combine_sync, mask, 0); }

template <typename T> struct of_emu_shuffle {
    T value, result;
    int source; // the lane to read
    static void combine(void** lanes, unsigned mask) {
        OF_EMU_LANES {
            of_emu_shuffle* me = (of_emu_shuffle*)lanes[lane];
            if (!(mask >> me->source & 1))
                of_emu_fail(OF_EMU_LAUNCH_FAILED, "a shuffle reads a lane that is not in its mask");
            me->result = ((of_emu_shuffle*)lanes[me->source])->value;
        }
    }
};
template <typename T> OF_EMU_INLINE T of_emu_shuffled(unsigned mask, T value, int source) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "shuffles move 16, 32 or 64 bits");
    of_emu_shuffle<T> mine;
    mine.value = value;
    mine.source = source;
    of_emu_collective(of_emu_shuffle<T>::combine, mask, &mine);
    return mine.result;
}
template <typename T> OF_EMU_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    int lane = of_emu_lane();
    return of_emu_shuffled(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <typename T> OF_EMU_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = of_emu_lane(), source = lane - (int)delta;
    return of_emu_shuffled(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <typename T> OF_EMU_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = of_emu_lane(), source = lane + (int)delta;
    return of_emu_shuffled(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <typename T> OF_EMU_INLINE T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32) {
    int lane = of_emu_lane(), source = lane ^ flip;
    return of_emu_shuffled(mask, value, source > (lane | (width - 1)) ? lane : source);
}

struct of_emu_vote {
    int predicate;
    unsigned result;
    static void combine(void** lanes, unsigned mask) {
        unsigned ballot = 0;
        OF_EMU_LANES ballot |= (unsigned)(((of_emu_vote*)lanes[lane])->predicate != 0) << lane;
        OF_EMU_LANES ((of_emu_vote*)lanes[lane])->result = ballot;
    }
};
OF_EMU_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
    of_emu_vote mine = {predicate, 0};
    of_emu_collective(of_emu_vote::combine, mask, &mine);
    return mine.result;
}
OF_EMU_INLINE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
OF_EMU_INLINE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <typename T> struct of_emu_match {
    T value;
    unsigned result;
    static void combine(void** lanes, unsigned mask) {
        OF_EMU_LANES {
            of_emu_match* me = (of_emu_match*)lanes[lane];
            me->result = 0;
            for (unsigned o = 0; o < 32; o++)
                if (mask >> o & 1 && ((of_emu_match*)lanes[o])->value == me->value) me->result |= 1u << o;
        }
    }
};
template <typename T> OF_EMU_INLINE unsigned __match_any_sync(unsigned mask, T value) {
    of_emu_match<T> mine = {value, 0};
    of_emu_collective(of_emu_match<T>::combine, mask, &mine);
    return mine.result;
}

template <typename T, typename Op> struct of_emu_reduce {
    T value;
    static void combine(void** lanes, unsigned mask) {
        bool first = true;
        T sum = T();
        OF_EMU_LANES {
            T x = ((of_emu_reduce*)lanes[lane])->value;
            sum = first ? x : Op::of(sum, x);
            first = false;
        }
        OF_EMU_LANES ((of_emu_reduce*)lanes[lane])->value = sum;
    }
};
#define OF_EMU_REDUCE(name, type, expression)                                                                          \
    struct of_emu_##name##_##type { static type of(type a, type b) { return expression; } };                           \
    OF_EMU_INLINE type __reduce_##name##_sync(unsigned mask, type value) {                                             \
        of_emu_reduce<type, of_emu_##name##_##type> mine = {value};                                                    \
        of_emu_collective(of_emu_reduce<type, of_emu_##name##_##type>::combine, mask, &mine);                          \
        return mine.value;                                                                                             \
    }
OF_EMU_REDUCE(add, unsigned, a + b)
OF_EMU_REDUCE(min, unsigned, a < b ? a : b)
OF_EMU_REDUCE(max, unsigned, a > b ? a : b)
OF_EMU_REDUCE(and, unsigned, a & b)
OF_EMU_REDUCE(or, unsigned, a | b)
OF_EMU_REDUCE(xor, unsigned, a ^ b)
OF_EMU_REDUCE(add, int, (int)((unsigned)a + (unsigned)b))
OF_EMU_REDUCE(min, int, a < b ? a : b)
OF_EMU_REDUCE(max, int, a > b ? a : b)

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

// ---- memory and atomics ---------------------------------------------------------------------------------------------

#define OF_EMU_LOAD(name) template <typename T> OF_EMU_INLINE T name(const T* p) { return *p; }
OF_EMU_LOAD(__ldg) OF_EMU_LOAD(__ldca) OF_EMU_LOAD(__ldcg) OF_EMU_LOAD(__ldcs) OF_EMU_LOAD(__ldcv) OF_EMU_LOAD(__ldlu)
#define OF_EMU_STORE(name) template <typename T> OF_EMU_INLINE void name(T* p, T v) { *p = v; }
OF_EMU_STORE(__stwb) OF_EMU_STORE(__stcg) OF_EMU_STORE(__stcs) OF_EMU_STORE(__stwt)

// The type of a parameter that follows another argument's.
template <typename T> struct of_emu_same { typedef T type; };
template <typename T> using of_emu_same_t = typename of_emu_same<T>::type;
template <size_t N> struct of_emu_word;
template <> struct of_emu_word<2> { typedef unsigned short type; };
template <> struct of_emu_word<4> { typedef unsigned type; };
template <> struct of_emu_word<8> { typedef unsigned long long type; };

template <typename T> OF_EMU_INLINE T atomicCAS(T* p, of_emu_same_t<T> compare, of_emu_same_t<T> value) {
    __atomic_compare_exchange(p, &compare, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return compare;
}
template <typename T> OF_EMU_INLINE T atomicExch(T* p, of_emu_same_t<T> value) {
    T old;
    __atomic_exchange(p, &value, &old, __ATOMIC_RELAXED);
    return old;
}
// Any read-modify-write as a loop over compare-and-swap, for floats too.
template <typename T, typename F> OF_EMU_INLINE T of_emu_update(T* p, F f) {
    T old = *(volatile T*)p, next = f(old);
    while (!__atomic_compare_exchange(p, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) next = f(old);
    return old;
}
#define OF_EMU_ATOMIC(name, expression)                                                                                \
    template <typename T> OF_EMU_INLINE T name(T* p, of_emu_same_t<T> x) {                                             \
        return of_emu_update(p, [x](T old) -> T { return expression; });                                               \
    }                                                                                                                  \
    template <typename T> OF_EMU_INLINE T name##_block(T* p, of_emu_same_t<T> x) { return name(p, x); }                \
    template <typename T> OF_EMU_INLINE T name##_system(T* p, of_emu_same_t<T> x) { return name(p, x); }
OF_EMU_ATOMIC(atomicAdd, old + x)
OF_EMU_ATOMIC(atomicSub, old - x)
OF_EMU_ATOMIC(atomicMax, old > x ? old : x)
OF_EMU_ATOMIC(atomicMin, old < x ? old : x)
OF_EMU_ATOMIC(atomicAnd, old & x)
OF_EMU_ATOMIC(atomicOr, old | x)
OF_EMU_ATOMIC(atomicXor, old ^ x)
OF_EMU_ATOMIC(atomicInc, old >= x ? 0 : old + 1)
OF_EMU_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)

// ---- mathematics ----------------------------------------------------------------------------------------------------

template <typename To, typename From> OF_EMU_INLINE To of_emu_cast(From x) { return __builtin_bit_cast(To, x); }
OF_EMU_INLINE unsigned __float_as_uint(float x) { return of_emu_cast<unsigned>(x); }
OF_EMU_INLINE int __float_as_int(float x) { return of_emu_cast<int>(x); }
OF_EMU_INLINE float __uint_as_float(unsigned x) { return of_emu_cast<float>(x); }
OF_EMU_INLINE float __int_as_float(int x) { return of_emu_cast<float>(x); }
OF_EMU_INLINE long long __double_as_longlong(double x) { return of_emu_cast<long long>(x); }
OF_EMU_INLINE double __longlong_as_double(long long x) { return of_emu_cast<double>(x); }
OF_EMU_INLINE int __double2hiint(double x) { return (int)(of_emu_cast<unsigned long long>(x) >> 32); }
OF_EMU_INLINE int __double2loint(double x) { return (int)of_emu_cast<unsigned long long>(x); }
OF_EMU_INLINE double __hiloint2double(int h, int l) {
    return of_emu_cast<double>((unsigned long long)(unsigned)h << 32 | (unsigned)l);
}

// The C library's functions, and the overloads for float that CUDA has.
#define OF_EMU_MATH1(name)                                                                                             \
    extern "C" double name(double);                                                                                    \
    extern "C" float name##f(float);                                                                                   \
    OF_EMU_INLINE float name(float x) { return name##f(x); }
#define OF_EMU_MATH2(name)                                                                                             \
    extern "C" double name(double, double);                                                                            \
    extern "C" float name##f(float, float);                                                                            \
    OF_EMU_INLINE float name(float x, float y) { return name##f(x, y); }
OF_EMU_MATH1(exp) OF_EMU_MATH1(exp2) OF_EMU_MATH1(exp10) OF_EMU_MATH1(expm1) OF_EMU_MATH1(log) OF_EMU_MATH1(log2)
OF_EMU_MATH1(log10) OF_EMU_MATH1(log1p) OF_EMU_MATH1(logb) OF_EMU_MATH1(sqrt) OF_EMU_MATH1(cbrt) OF_EMU_MATH1(sin)
OF_EMU_MATH1(cos) OF_EMU_MATH1(tan) OF_EMU_MATH1(asin) OF_EMU_MATH1(acos) OF_EMU_MATH1(atan) OF_EMU_MATH1(sinh)
OF_EMU_MATH1(cosh) OF_EMU_MATH1(tanh) OF_EMU_MATH1(asinh) OF_EMU_MATH1(acosh) OF_EMU_MATH1(atanh) OF_EMU_MATH1(erf)
OF_EMU_MATH1(erfc) OF_EMU_MATH1(tgamma) OF_EMU_MATH1(lgamma) OF_EMU_MATH1(ceil) OF_EMU_MATH1(floor) OF_EMU_MATH1(trunc)
OF_EMU_MATH1(round) OF_EMU_MATH1(rint) OF_EMU_MATH1(nearbyint) OF_EMU_MATH1(fabs)
OF_EMU_MATH2(pow) OF_EMU_MATH2(fmod) OF_EMU_MATH2(remainder) OF_EMU_MATH2(atan2) OF_EMU_MATH2(hypot) OF_EMU_MATH2(fdim)
OF_EMU_MATH2(fmin) OF_EMU_MATH2(fmax) OF_EMU_MATH2(copysign) OF_EMU_MATH2(nextafter)
extern "C" {
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int*);
float frexpf(float, int*);
double modf(double, double*);
float modff(float, float*);
void sincos(double, double*, double*);
void sincosf(float, float*, float*);
long long llrint(double);
long long llrintf(float);
long lrint(double);
long lrintf(float);
long long llround(double);
long long llroundf(float);
int abs(int);
long long llabs(long long);
}
OF_EMU_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
OF_EMU_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
OF_EMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
OF_EMU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
OF_EMU_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
OF_EMU_INLINE float normcdff(float x) { return (float)normcdf((double)x); }
OF_EMU_INLINE double erfcx(double x) { return exp(x * x) * erfc(x); }
OF_EMU_INLINE float sinpif(float x) { return (float)sin(3.14159265358979323846 * x); }
OF_EMU_INLINE float cospif(float x) { return (float)cos(3.14159265358979323846 * x); }
OF_EMU_INLINE void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
OF_EMU_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
OF_EMU_INLINE long abs(long x) { return x < 0 ? -x : x; }
OF_EMU_INLINE float abs(float x) { return fabsf(x); }
OF_EMU_INLINE double abs(double x) { return fabs(x); }
#define OF_EMU_CLASSIFY(name)                                                                                          \
    OF_EMU_INLINE bool name(float x) { return __builtin_##name(x); }                                                   \
    OF_EMU_INLINE bool name(double x) { return __builtin_##name(x); }
OF_EMU_CLASSIFY(isnan) OF_EMU_CLASSIFY(isinf) OF_EMU_CLASSIFY(isfinite) OF_EMU_CLASSIFY(signbit)
#define OF_EMU_MINMAX(type)                                                                                            \
    OF_EMU_INLINE type min(type a, type b) { return a < b ? a : b; }                                                   \
    OF_EMU_INLINE type max(type a, type b) { return a > b ? a : b; }
OF_EMU_MINMAX(int) OF_EMU_MINMAX(unsigned) OF_EMU_MINMAX(long) OF_EMU_MINMAX(unsigned long)
OF_EMU_MINMAX(long long) OF_EMU_MINMAX(unsigned long long)
OF_EMU_INLINE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
OF_EMU_INLINE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
OF_EMU_INLINE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
OF_EMU_INLINE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
OF_EMU_INLINE float min(float a, float b) { return fminf(a, b); }
OF_EMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
OF_EMU_INLINE double min(double a, double b) { return fmin(a, b); }
OF_EMU_INLINE double max(double a, double b) { return fmax(a, b); }

// The fast ones are as good as the good ones here; a GPU's differ in the last bits.
#define OF_EMU_AS1(name, as) OF_EMU_INLINE float name(float x) { return as; }
OF_EMU_AS1(__expf, expf(x)) OF_EMU_AS1(__exp10f, exp10f(x)) OF_EMU_AS1(__logf, logf(x)) OF_EMU_AS1(__log2f, log2f(x))
OF_EMU_AS1(__log10f, log10f(x)) OF_EMU_AS1(__sinf, sinf(x)) OF_EMU_AS1(__cosf, cosf(x)) OF_EMU_AS1(__tanf, tanf(x))
OF_EMU_AS1(__tanhf, tanhf(x)) OF_EMU_AS1(__frcp_rn, 1.0f / x) OF_EMU_AS1(__fsqrt_rn, sqrtf(x))
OF_EMU_AS1(__frsqrt_rn, rsqrtf(x)) OF_EMU_AS1(__saturatef, x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f)
OF_EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
OF_EMU_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
OF_EMU_INLINE float fdividef(float a, float b) { return a / b; }
OF_EMU_INLINE float __fdividef(float a, float b) { return a / b; }
OF_EMU_INLINE float __fadd_rn(float a, float b) { return a + b; }
OF_EMU_INLINE float __fsub_rn(float a, float b) { return a - b; }
OF_EMU_INLINE float __fmul_rn(float a, float b) { return a * b; }
OF_EMU_INLINE float __fdiv_rn(float a, float b) { return a / b; }
OF_EMU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE float __fmaf_ieee_rn(float a, float b, float c) { return fmaf(a, b, c); }
OF_EMU_INLINE double __dadd_rn(double a, double b) { return a + b; }
OF_EMU_INLINE double __dsub_rn(double a, double b) { return a - b; }
OF_EMU_INLINE double __dmul_rn(double a, double b) { return a * b; }
OF_EMU_INLINE double __ddiv_rn(double a, double b) { return a / b; }
OF_EMU_INLINE double __drcp_rn(double a) { return 1.0 / a; }
OF_EMU_INLINE double __dsqrt_rn(double a) { return sqrt(a); }
OF_EMU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// Conversions saturate, as the GPU's do.
template <typename To, typename From> OF_EMU_INLINE To of_emu_saturate(From x) {
    const int bits = sizeof(To) * 8;
    const bool is_signed = (To)-1 < (To)0;
    const double limit = is_signed ? (double)(1ull << (bits - 1)) : 2.0 * (double)(1ull << (bits - 1));
    const To top = is_signed ? (To)((1ull << (bits - 1)) - 1) : (To)~0ull, bottom = is_signed ? (To)(1ull << (bits - 1)) : 0;
    return x != x ? (is_signed && bits == 32 ? 0 : (To)(1ull << (bits - 1))) : x >= limit ? top : x <= (is_signed ? -limit : 0.0) ? bottom : (To)x;
}
#define OF_EMU_CONVERT(from, word, to, type)                                                                           \
    OF_EMU_INLINE type __##word##2##to##_rn(from x) { return of_emu_saturate<type>(rint(x)); }                         \
    OF_EMU_INLINE type __##word##2##to##_rz(from x) { return of_emu_saturate<type>(trunc(x)); }                        \
    OF_EMU_INLINE type __##word##2##to##_rd(from x) { return of_emu_saturate<type>(floor(x)); }                        \
    OF_EMU_INLINE type __##word##2##to##_ru(from x) { return of_emu_saturate<type>(ceil(x)); }
OF_EMU_CONVERT(float, float, int, int) OF_EMU_CONVERT(float, float, uint, unsigned)
OF_EMU_CONVERT(float, float, ll, long long) OF_EMU_CONVERT(float, float, ull, unsigned long long)
OF_EMU_CONVERT(double, double, int, int) OF_EMU_CONVERT(double, double, uint, unsigned)
OF_EMU_CONVERT(double, double, ll, long long) OF_EMU_CONVERT(double, double, ull, unsigned long long)
OF_EMU_INLINE float __int2float_rn(int x) { return (float)x; }
OF_EMU_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
OF_EMU_INLINE float __ll2float_rn(long long x) { return (float)x; }
OF_EMU_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
OF_EMU_INLINE float __double2float_rn(double x) { return (float)x; }
OF_EMU_INLINE double __int2double_rn(int x) { return (double)x; }
OF_EMU_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
OF_EMU_INLINE double __ll2double_rn(long long x) { return (double)x; }
OF_EMU_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

OF_EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
OF_EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
OF_EMU_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
OF_EMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
OF_EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
OF_EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
OF_EMU_INLINE unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
OF_EMU_INLINE unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
OF_EMU_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
OF_EMU_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
OF_EMU_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
OF_EMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
OF_EMU_INLINE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
OF_EMU_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
OF_EMU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(both >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
OF_EMU_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
OF_EMU_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}

extern "C" int clock_gettime(int, void*);
OF_EMU_INLINE long long clock64() {
    long long t[2];
    clock_gettime(1, t);
    return t[0] * 1000000000ll + t[1];
}
OF_EMU_INLINE int clock() { return (int)clock64(); }
OF_EMU_INLINE void __nanosleep(unsigned) {}
OF_EMU_INLINE void __trap() { of_emu_fail(OF_EMU_LAUNCH_FAILED, "the kernel executed a trap"); }
OF_EMU_INLINE void __brkpt() {}

// ---- launch ---------------------------------------------------------------------------------------------------------

// How the driver sees a kernel: a C struct, in a table at the end of the program.
struct of_emu_kernel {
    const char* name;
    void (*call)(void** params);
    unsigned count;
    const unsigned *sizes, *aligns, *pointers;
    unsigned max_threads;
};
template <typename T> constexpr unsigned of_emu_is_pointer = 0;
template <typename T> constexpr unsigned of_emu_is_pointer<T*> = 1;
template <unsigned... I> struct of_emu_indices {};
template <unsigned N, unsigned... I> struct of_emu_upto : of_emu_upto<N - 1, N - 1, I...> {};
template <unsigned... I> struct of_emu_upto<0, I...> { typedef of_emu_indices<I...> type; };
template <auto Function> struct of_emu_entry;
template <typename... A, void (*Function)(A...)> struct of_emu_entry<Function> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned sizes[] = {sizeof(A)..., 0}, aligns[] = {alignof(A)..., 0};
    static constexpr unsigned pointers[] = {of_emu_is_pointer<A>..., 0};
    template <unsigned... I> OF_EMU_INLINE void spread(void** params, of_emu_indices<I...>) { Function(*(A*)params[I]...); }
    static void call(void** params) { spread(params, typename of_emu_upto<sizeof...(A)>::type()); }
};
constexpr unsigned of_emu_bounds(unsigned threads = 1024, unsigned = 0, unsigned = 0) { return threads; }

// Makes the loader give this thread its copy of the thread-local variables.
extern "C" __attribute__((visibility("default"))) void of_emu_touch() {
    static thread_local volatile char touched;
    touched = 1;
}

// Runs a grid on the calling thread, block by block. Returns a CUresult.
extern "C" __attribute__((visibility("default"))) int of_emu_run(void (*call)(void**), void** params, of_emu_launch* l) {
    of_emu_state* s = (of_emu_state*)l->arena;
    unsigned count = l->block[0] * l->block[1] * l->block[2], warps = (count + 31) / 32;
    s->block_dim = dim3(l->block[0], l->block[1], l->block[2]);
    s->grid_dim = dim3(l->grid[0], l->grid[1], l->grid[2]);
    s->order = l->order;
    s->count = count;
    s->call = call;
    s->params = params;
    s->error = l->error;
    s->error_size = l->error_size;
    s->code = 0;
    l->fault = of_emu_fault;
    char* shared = (char*)s + OF_EMU_SHARED_AT;
    // Behind what the launch asked for lies a fence that a write out of bounds changes.
    const unsigned fence = 256;
    memset(shared + l->shared, 0xa5, fence);
    for (unsigned z = 0; z < l->grid[2]; z++)
        for (unsigned y = 0; y < l->grid[1]; y++)
            for (unsigned x = 0; x < l->grid[0]; x++) {
                s->block = {x, y, z};
                s->next = s->workers = s->ready_warps = s->copies_used = 0;
                s->barrier_waiting = s->barrier_sum = 0;
                s->next_index = {0, 0, 0};
                s->alive = count;
                for (unsigned w = 0; w < warps; w++) {
                    of_emu_warp* warp = &s->warps[w];
                    warp->exists = count - 32 * w >= 32 ? 0xffffffffu : (1u << (count - 32 * w)) - 1;
                    warp->ended = warp->ready = warp->at_barrier = 0;
                    for (int i = 0; i < OF_EMU_PENDING; i++) warp->pending[i].arrived = 0;
                }
                // What a block has not written is NaN.
                memset(shared, 0xff, l->shared);
                if (l->statics) memset(l->statics, 0xff, l->statics_size);
                of_emu_switch(&s->host_sp, of_emu_new_worker(s));
                if (s->code) return s->code;
                for (unsigned i = 0; i < fence; i++)
                    if (shared[l->shared + i] != (char)0xa5) {
                        snprintf(s->error, s->error_size, "block %u,%u,%u wrote behind its %u bytes of dynamic shared memory",
                                 x, y, z, l->shared);
                        return OF_EMU_ILLEGAL_ADDRESS;
                    }
            }
    return 0;
}

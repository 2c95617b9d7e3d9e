/* Times of single collectives of MPI. Usage: collectives_mpi REDUCE|GATHER LATE_US BYTES:TIMES...; rank 0 prints for each size a
 * line "BYTES t1 t2 ...", the nanoseconds of each call. With LATE_US the last rank computes that long before each call, and its
 * times are printed. Built and run by launcher/benches/boxings.rs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int reduce = !strcmp(argv[1], "REDUCE");
    long long late = atoll(argv[2]) * 1000;
    int teller = late ? ranks - 1 : 0;
    for (int c = 3; c < argc; c++) {
        long bytes, times;
        if (sscanf(argv[c], "%ld:%ld", &bytes, &times) != 2) return 1;
        long whole = bytes / 4, part = reduce ? whole : whole / ranks;
        float *from = malloc(part * 4 + 4), *to = malloc(whole * 4 + 4);
        long long *took = malloc(times * sizeof *took);
        for (long i = 0; i < part; i++) from[i] = 1.0f;
        for (long i = -3; i < times; i++) {
            if (late && rank == teller)
                for (long long end = now() + late; now() < end;) {}
            long long start = now();
            if (reduce) MPI_Allreduce(from, to, whole, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            else MPI_Allgather(from, part, MPI_FLOAT, to, part, MPI_FLOAT, MPI_COMM_WORLD);
            if (i >= 0) took[i] = now() - start;
        }
        if (part && to[0] != (reduce ? (float)ranks : 1.0f)) return 2;
        if (rank == teller) {
            printf("%ld", bytes);
            for (long i = 0; i < times; i++) printf(" %lld", took[i]);
            printf("\n");
            fflush(stdout);
        }
        free(from);
        free(to);
        free(took);
    }
    MPI_Finalize();
    return 0;
}

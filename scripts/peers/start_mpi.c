/* From nothing to the end of the first all-reduce under Open MPI: each rank prints the time it got there, in nanoseconds
 * since 1970. Built and run by launcher/benches/start.rs. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv) {
    float mine = 1.0f, sum = 0.0f;
    struct timespec now;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    clock_gettime(CLOCK_REALTIME, &now);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (sum != (float)ranks) return 1;
    printf("%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
    MPI_Finalize();
    return 0;
}

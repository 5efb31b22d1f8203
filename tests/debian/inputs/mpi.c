#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    int rank, sum, *many = malloc(1 << 20);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1 << 18; i++)
        many[i] = rank == 0 ? i : 0;
    MPI_Bcast(many, 1 << 18, MPI_INT, 0, MPI_COMM_WORLD);
    int mine = many[1000 + rank];
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %d\n", sum);
    MPI_Finalize();
    free(many);
    return 0;
}

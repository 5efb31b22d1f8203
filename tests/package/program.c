/* Describes and enforces a distribution with what was installed, and prints the library's version. */
#include <nodewise.h>
#include <nodewise_schedule.h>
#include <stdio.h>

int main(void) {
    double *array = nw_alloc_2d(64, 512, sizeof *array);
    if (!array || nw_place(array, nw_cyclic(NW_PAGES, 1)) < 0) {
        fprintf(stderr, "%s\n", nw_last_error());
        return 1;
    }
    double sum = 0;
    nw_for_static (i, 0, 64 * 512)
        sum += array[i] + 1;
    nw_distr *distr = nw_describe(array, nw_block_exclusive(0));
    int fits = distr && nw_distr_cuts(distr, 0).end == 64;
    nw_distr_free(distr);
    if (sum != 64 * 512 || !fits || nw_free(array) != NW_OK)
        return 1;
    puts(nw_version());
    return 0;
}

/* What mai_init makes of a configuration file: the status, the message, and what is in force. */
#include <mai.h>
#include <stdio.h>

int main(int argc, char **argv) {
    mai_init(argc > 1 ? argv[1] : NULL);
    printf("status %d\n%s%s", mai_last_status(), mai_last_status() ? nw_last_error() : "",
           mai_last_status() ? "\n" : "");
    printf("nodes");
    for (int i = 0; i < mai_get_num_nodes(); i++)
        printf(" %lu", mai_get_nodes_id()[i]);
    printf("\ncpus");
    for (int i = 0; i < mai_get_num_cpu(); i++)
        printf(" %lu", mai_get_cpus_id()[i]);
    printf("\nthreads %d\n", mai_get_num_threads());
    mai_show_nodes();
    mai_show_cpus();
    mai_final();
    return 0;
}

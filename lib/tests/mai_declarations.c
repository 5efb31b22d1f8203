/* Section 3.2 of the paper: its 43 functions, each assigned to a pointer of the paper's type. Prints
 * their names; that the library exports them, and no others, is checked against this list. */
#include <mai.h>
#include <stdio.h>

#define FUNCTIONS(F)                                                \
    F(void, mai_init, (char[]))                                     \
    F(void, mai_final, (void))                                      \
    F(int, mai_get_num_nodes, (void))                               \
    F(int, mai_get_num_threads, (void))                             \
    F(int, mai_get_num_cpu, (void))                                 \
    F(unsigned long *, mai_get_nodes_id, (void))                    \
    F(unsigned long *, mai_get_cpus_id, (void))                     \
    F(void, mai_show_nodes, (void))                                 \
    F(void, mai_show_cpus, (void))                                  \
    F(void *, mai_alloc_1D, (int, size_t, int))                     \
    F(void *, mai_alloc_2D, (int, int, size_t, int))                \
    F(void *, mai_alloc_3D, (int, int, int, size_t, int))           \
    F(void *, mai_alloc_4D, (int, int, int, int, size_t, int))      \
    F(void, mai_free_array, (void *))                               \
    F(void, mai_cyclic, (void *))                                   \
    F(void, mai_skew_mapp, (void *))                                \
    F(void, mai_prime_mapp, (void *, int))                          \
    F(void, mai_cyclic_rows, (void *, int))                         \
    F(void, mai_skew_mapp_rows, (void *, int))                      \
    F(void, mai_prime_mapp_rows, (void *, int, int))                \
    F(void, mai_cyclic_columns, (void *, int))                      \
    F(void, mai_skew_mapp_columns, (void *, int))                   \
    F(void, mai_prime_mapp_columns, (void *, int, int))             \
    F(void, mai_bind_all, (void *))                                 \
    F(void, mai_bind_rows, (void *))                                \
    F(void, mai_bind_columns, (void *))                             \
    F(void, mai_random, (void *))                                   \
    F(void, mai_random_rows, (void *, int))                         \
    F(void, mai_random_columns, (void *, int))                      \
    F(void, mai_migrate_rows, (void *, unsigned long, int, int))    \
    F(void, mai_migrate_columns, (void *, unsigned long, int, int)) \
    F(void, mai_migrate_scatter, (void *, unsigned long))           \
    F(void, mai_migrate_gather, (void *, unsigned long))            \
    F(void, bind_threads, (void))                                   \
    F(void, bind_thread_posix, (int))                               \
    F(void, bind_thread_omp, (int))                                 \
    F(void, mai_migrate_thread, (pid_t, unsigned long))             \
    F(void, mai_print_pagenodes, (unsigned long *, int))            \
    F(int, mai_number_page_migration, (unsigned long *, int))       \
    F(double, mai_get_time_pmigration, (void))                      \
    F(void, mai_print_threadcpus, (void))                           \
    F(int, mai_number_thread_migration, (unsigned int *, int))      \
    F(double, mai_get_time_tmigration, (void))

/* A wrong type does not compile: with -Werror incompatible pointers are errors. */
#define POINTER(result, name, arguments) static result(*volatile pointer_##name) arguments = name;
FUNCTIONS(POINTER)

#define NAME(result, name, arguments) \
    if (pointer_##name)               \
        puts(#name);

_Static_assert(CHAR == MAI_CHAR && INT == MAI_INT && FLOAT == MAI_FLOAT && DOUBLE == MAI_DOUBLE && STRUCT == MAI_STRUCT,
               "the paper's types");

int main(void) {
    FUNCTIONS(NAME)
    return 0;
}

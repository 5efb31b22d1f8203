/* lib/examples/page_map.c, printing where pages belong in place of where they are. */
#include <nodewise.h>

#define nw_page_nodes(array, nodes, size) say_owners(array, policy, nodes, size)
static void say_owners(const void *array, nw_policy policy, int *nodes, int size) {
    nw_distr *distr = nw_describe(array, policy);
    for (int page = 0; page < size; page++)
        nodes[page] = nw_distr_page_node(distr, (size_t)page);
    nw_distr_free(distr);
}

#include "../../lib/examples/page_map.c"

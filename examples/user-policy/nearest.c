/* Each page where its accesses wait least: the node with the smallest sum of latencies.
 *
 * On a machine whose remote latencies are all equal this is the locality policy; where they
 * differ, a page shared by several nodes goes to the one in their middle.
 */
#include "nodewise_policy.h"

uint32_t nodewise_policy_abi(void) { return NODEWISE_POLICY_ABI; }

static double waiting(const nodewise_histogram *h, uint64_t page, uint32_t memory) {
    double sum = 0;
    for (uint64_t i = h->offsets[page]; i < h->offsets[page + 1]; i++) {
        const nodewise_cell *cell = &h->cells[i];
        uint32_t reader = h->thread_node[cell->thread];
        sum += (double)(cell->reads + cell->writes) * h->latency[reader * h->nodes + memory];
    }
    return sum;
}

int nodewise_policy(const nodewise_histogram *h, uint32_t *node) {
    for (uint64_t page = 0; page < h->pages; page++) {
        node[page] = 0;
        double least = waiting(h, page, 0);
        for (uint32_t memory = 1; memory < h->nodes; memory++) {
            double sum = waiting(h, page, memory);
            if (sum < least) {
                least = sum;
                node[page] = memory;
            }
        }
    }
    return 0;
}

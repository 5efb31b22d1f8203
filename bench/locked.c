/* For comparison: a page counter in the manner of QEMU's `hotpages` plugin, which distributions do not
 * ship: one hash table of pages for all virtual CPUs and one lock around every access. Written anew. */
#include "../runtime/emulator/qemu.h"

#include <pthread.h>
#include <stdio.h>

NW_PLUGIN int qemu_plugin_version = NW_QEMU_API;
NW_PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments);

enum { SLOTS = 1 << 20 };

static struct {
    uint64_t page; /* and one */
    uint64_t reads, writes, cpus;
} table[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused)
{
    uint64_t key = (address >> 12) + 1, slot = key * 0x9e3779b97f4a7c15ull >> 44;
    (void)unused;
    pthread_mutex_lock(&lock);
    while (table[slot].page != 0 && table[slot].page != key)
        slot = (slot + 1) % SLOTS;
    table[slot].page = key;
    if (qemu_plugin_mem_is_store(info))
        table[slot].writes++;
    else
        table[slot].reads++;
    table[slot].cpus |= 1ull << vcpu % 64;
    pthread_mutex_unlock(&lock);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), accessed, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
}

static void ended(qemu_plugin_id_t id, void *unused)
{
    uint64_t accesses = 0;
    (void)id, (void)unused;
    for (unsigned i = 0; i < SLOTS; i++)
        accesses += table[i].reads + table[i].writes;
    fprintf(stderr, "%lu accesses\n", accesses);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments)
{
    (void)info, (void)count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}

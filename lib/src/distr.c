/* The functions with Majo and Gross's names: nodewise_distr.h. */
#include "nodewise_distr.h"

#include "library.h"

/* The array, if it has `size` items. */
static nw_array *sized(void *m, size_t size) {
    nw_array *array = nw_array_of(m);
    if (!array || array->shape.items == size)
        return array;
    nw_fail(NW_INVALID, "a size of %zu items: the array has %zu", size, array->shape.items);
    return NULL;
}

data_distr_t *create_block_cyclic_distr(void *m, size_t size, size_t block_size) {
    nw_array *array = sized(m, size);
    nw_policy policy = nw_block_cyclic(block_size);
    if (array && block_size)
        return nw_describe_array(array, &policy);
    if (array)
        nw_fail(NW_INVALID, "a block size of 0 items: a block-cyclic distribution needs one of 1 or more");
    return NULL;
}

/* Whether a block in one row of the array can have this many items. */
static int block_fits(const nw_shape *shape, size_t block_size, size_t processors) {
    size_t columns = shape->extents[1], depth = shape->extents[2] * shape->extents[3];
    size_t least = columns / processors * depth, most = (columns + processors - 1) / processors * depth;
    if (block_size == least || block_size == most)
        return 1;
    nw_fail(NW_INVALID,
            "a block size of %zu items: %zu columns over %zu processors make blocks of %zu in a row (or 0 for that)",
            block_size, columns, processors, most);
    return 0;
}

/* Treats an array of one dimension as a matrix; each of its rows has one block for each processor. */
static int make_matrix(nw_shape *shape, size_t block_size, size_t processors) {
    size_t row;
    if (!block_size || __builtin_mul_overflow(block_size, processors, &row) || shape->items % row) {
        nw_fail(
            NW_INVALID,
            "a block size of %zu items: in an array of one dimension, %zu blocks make a row, and rows must divide its %zu items",
            block_size, processors, shape->items);
        return 0;
    }
    shape->dimensions = 2;
    shape->extents[0] = shape->items / row;
    shape->extents[1] = row;
    return 1;
}

data_distr_t *create_block_exclusive_distr(void *m, size_t size, size_t block_size) {
    nw_array *array = sized(m, size);
    if (!array)
        return NULL;
    size_t processors = (size_t)nw_processors();
    nw_policy policy = nw_block_exclusive(0);
    nw_array shaped = *array;
    if (shaped.shape.dimensions == 1 ? !make_matrix(&shaped.shape, block_size, processors)
                                     : block_size && !block_fits(&shaped.shape, block_size, processors))
        return NULL;
    return nw_describe_array(&shaped, &policy);
}

int distribute_to(data_distr_t *distribution) { return nw_distribute(distribution); }

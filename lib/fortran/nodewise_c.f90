! Fortran interfaces of the library's C functions. Programs use the module `nodewise`.
module nodewise_c
    use, intrinsic :: iso_c_binding
    implicit none
    public

    type, bind(c) :: c_policy
        integer(c_int) :: kind
        integer(c_int) :: unit
        integer(c_size_t) :: block
        type(c_ptr) :: nodes
        integer(c_int) :: node_count
        type(c_ptr) :: weights
        integer(c_int) :: prime
        integer(c_int64_t) :: seed
        integer(c_int) :: threads
        integer(c_int) :: dimensions
        integer(c_int) :: granule
    end type

    type, bind(c) :: c_shape
        integer(c_size_t) :: item
        integer(c_int) :: dimensions
        integer(c_size_t) :: extents(4)
        integer(c_size_t) :: items, pages
    end type

    type, bind(c) :: c_range
        integer(c_long) :: begin, end
    end type

    ! Indices `begin` to `end - 1`, in `parts` parts. Indices are those of the program: they begin at 1, or where its
    ! loop begins.
    type, bind(c) :: nw_cuts
        integer(c_long) :: begin = 1, end = 1
        integer(c_int) :: parts = 1
    end type

    ! A thread's share of one part of a block-exclusive sweep.
    type, bind(c) :: nw_exclusive
        integer(c_long) :: begin, end, from, to
        type(nw_cuts) :: cuts
        integer(c_int) :: id, node, last
        integer(c_long) :: each, more, offset, length, offset_more, length_more
    end type

    type, bind(c) :: nw_statistics
        integer(c_int64_t) :: pages_moved
        real(c_double) :: page_seconds
        integer(c_int64_t) :: threads_moved
        real(c_double) :: thread_seconds
        integer(c_int64_t) :: calls
    end type

    ! What copies take: how many are in use, their bytes, those of copies that the guard gave up, and pages that lie on
    ! another node than their copy is for.
    type, bind(c) :: nw_copies
        integer(c_int) :: count = 0
        integer(c_size_t) :: bytes = 0, kept_bytes = 0, elsewhere = 0
    end type

    interface
        function c_last_error() bind(c, name='nw_last_error') result(line)
            import :: c_ptr
            type(c_ptr) :: line
        end function
        function c_version() bind(c, name='nw_version') result(line)
            import :: c_ptr
            type(c_ptr) :: line
        end function
        pure function c_strlen(text) bind(c, name='strlen') result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
        function c_nodes(nodes, size) bind(c, name='nw_nodes') result(count)
            import :: c_int
            integer(c_int), intent(out) :: nodes(*)
            integer(c_int), value :: size
            integer(c_int) :: count
        end function
        function c_cpus(cpus, size) bind(c, name='nw_cpus') result(count)
            import :: c_int
            integer(c_int), intent(out) :: cpus(*)
            integer(c_int), value :: size
            integer(c_int) :: count
        end function
        function c_alloc(item, dimensions, extents) bind(c, name='nw_alloc') result(data)
            import :: c_ptr, c_size_t, c_int
            integer(c_size_t), value :: item
            integer(c_int), value :: dimensions
            integer(c_size_t), intent(in) :: extents(*)
            type(c_ptr) :: data
        end function
        function c_free(array) bind(c, name='nw_free') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array
            integer(c_int) :: status
        end function
        function c_adopt(memory, item, dimensions, extents) bind(c, name='nw_adopt') result(status)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: memory
            integer(c_size_t), value :: item
            integer(c_int), value :: dimensions
            integer(c_size_t), intent(in) :: extents(*)
            integer(c_int) :: status
        end function
        function c_forget(memory) bind(c, name='nw_forget') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: memory
            integer(c_int) :: status
        end function
        function c_shape_of(array, shape) bind(c, name='nw_shape_of') result(status)
            import :: c_ptr, c_int, c_shape
            type(c_ptr), value :: array
            type(c_shape), intent(out) :: shape
            integer(c_int) :: status
        end function
        function c_place(array, policy) bind(c, name='nw_place_by') result(status)
            import :: c_ptr, c_int, c_policy
            type(c_ptr), value :: array
            type(c_policy), intent(in) :: policy
            integer(c_int) :: status
        end function
        function c_describe(array, policy) bind(c, name='nw_describe_by') result(distr)
            import :: c_ptr, c_policy
            type(c_ptr), value :: array
            type(c_policy), intent(in) :: policy
            type(c_ptr) :: distr
        end function
        function c_distribute(distr) bind(c, name='nw_distribute') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: distr
            integer(c_int) :: status
        end function
        subroutine c_distr_free(distr) bind(c, name='nw_distr_free')
            import :: c_ptr
            type(c_ptr), value :: distr
        end subroutine
        function c_distr_status(distr) bind(c, name='nw_distr_status') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: distr
            integer(c_int) :: status
        end function
        function c_distr_item_node(distr, item) bind(c, name='nw_distr_item_node') result(node)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: distr
            integer(c_size_t), value :: item
            integer(c_int) :: node
        end function
        function c_distr_page_node(distr, page) bind(c, name='nw_distr_page_node') result(node)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: distr
            integer(c_size_t), value :: page
            integer(c_int) :: node
        end function
        function c_distr_cuts(distr, dimension) bind(c, name='nw_distr_cuts') result(cuts)
            import :: c_ptr, c_int, nw_cuts
            type(c_ptr), value :: distr
            integer(c_int), value :: dimension
            type(nw_cuts) :: cuts
        end function
        function c_migrate_rows(array, node, count, first) bind(c, name='nw_migrate_rows') result(status)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: array
            integer(c_int), value :: node
            integer(c_size_t), value :: count, first
            integer(c_int) :: status
        end function
        function c_migrate_columns(array, node, count, first) bind(c, name='nw_migrate_columns') result(status)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: array
            integer(c_int), value :: node
            integer(c_size_t), value :: count, first
            integer(c_int) :: status
        end function
        function c_scatter(array, nodes, node_count) bind(c, name='nw_scatter') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array, nodes
            integer(c_int), value :: node_count
            integer(c_int) :: status
        end function
        function c_gather(array, node) bind(c, name='nw_gather') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array
            integer(c_int), value :: node
            integer(c_int) :: status
        end function
        function c_replicate(array) bind(c, name='nw_replicate') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array
            integer(c_int) :: status
        end function
        function c_replicate_on(array, nodes, node_count) bind(c, name='nw_replicate_on') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array, nodes
            integer(c_int), value :: node_count
            integer(c_int) :: status
        end function
        function c_copies_of(array, copies, pages, size) bind(c, name='nw_copies_of') result(status)
            import :: c_ptr, c_int, c_size_t, nw_copies
            type(c_ptr), value :: array
            type(nw_copies), intent(out) :: copies
            integer(c_size_t), intent(out) :: pages(*)
            integer(c_int), value :: size
            integer(c_int) :: status
        end function
        function c_check_copies(array) bind(c, name='nw_check_copies') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array
            integer(c_int) :: status
        end function
        function c_drop_copies(array) bind(c, name='nw_drop_copies') result(status)
            import :: c_ptr, c_int
            type(c_ptr), value :: array
            integer(c_int) :: status
        end function
        function c_nearest(array) bind(c, name='nw_nearest') result(copy)
            import :: c_ptr
            type(c_ptr), value :: array
            type(c_ptr) :: copy
        end function
        function c_page_nodes(array, nodes, size) bind(c, name='nw_page_nodes') result(status)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: array
            integer(c_int), intent(out) :: nodes(*)
            integer(c_size_t), value :: size
            integer(c_int) :: status
        end function
        function c_histogram(array, pages, size, untouched) bind(c, name='nw_histogram') result(status)
            import :: c_ptr, c_size_t, c_int
            type(c_ptr), value :: array
            integer(c_size_t), intent(out) :: pages(*)
            integer(c_int), value :: size
            integer(c_size_t), intent(out) :: untouched
            integer(c_int) :: status
        end function
        pure function c_part(cuts, part) bind(c, name='nw_part_call') result(range)
            import :: c_int, c_range, nw_cuts
            type(nw_cuts), value :: cuts
            integer(c_int), value :: part
            type(c_range) :: range
        end function
        pure function c_exclusive_begin(begin, end, cuts, id, thread, threads) &
            bind(c, name='nw_exclusive_begin_call') result(exclusive)
            import :: c_int, c_long, nw_cuts, nw_exclusive
            integer(c_long), value :: begin, end
            type(nw_cuts), value :: cuts
            integer(c_int), value :: id, thread, threads
            type(nw_exclusive) :: exclusive
        end function
        function c_exclusive_next(exclusive) bind(c, name='nw_exclusive_next_call') result(more)
            import :: c_int, nw_exclusive
            type(nw_exclusive), intent(inout) :: exclusive
            integer(c_int) :: more
        end function
        function c_fail_call(status, line) bind(c, name='nw_fail_call') result(same)
            import :: c_int, c_char
            integer(c_int), value :: status
            character(kind=c_char), intent(in) :: line(*)
            integer(c_int) :: same
        end function
    end interface

    integer(c_int), parameter :: c_invalid = -1

contains
    ! Sets the library's message, in Fortran's terms.
    subroutine c_fail(status, line)
        integer(c_int), intent(in) :: status
        character(len=*), intent(in) :: line
        integer(c_int) :: same
        same = c_fail_call(status, trim(line)//c_null_char)
    end subroutine
end module

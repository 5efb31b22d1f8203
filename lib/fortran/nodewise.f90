! libnodewise for Fortran: arrays that lie where their threads are.
!
!     use nodewise
!     real(real64), pointer :: u(:, :)
!     call nw_allocate(u, n, n)
!     if (.not. associated(u)) stop 'no memory'
!     status = nw_place(u, nw_bind(nw_columns))       ! each block of columns to the thread that works on it
!
! All terms refer to Fortran's order, in which the first index varies fastest. A column is a(:, j), one piece
! of memory; a row is a(i, :), an item of each column. With three or four dimensions, columns are the indices
! of the last dimension and rows those of the one before it; in an array of one dimension both are its items.
! Dimensions count from 1, the first one varying fastest. Ranges of indices and iterations include both ends,
! and begin at 1 or where the program's loop begins. Nodes, CPUs and threads have the numbers that Linux and
! OpenMP give them, from 0; parts also count from 0.
!
! Functions that place return a status: 0 done; positive: not all was done, and nw_last_error() says what;
! negative: a wrong argument, and nothing was done. Nothing prints or stops the program.
module nodewise
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64
    use nodewise_c
    use nodewise_arrays
    implicit none
    private

    public :: nw_allocate, nw_free, nw_adopt, nw_forget, nw_nearest
    public :: nw_replicate, nw_copies, nw_copies_of, nw_check_copies, nw_drop_copies
    public :: nw_policy, nw_first_touch, nw_cyclic, nw_block_cyclic, nw_skew, nw_prime, nw_random
    public :: nw_bind_all, nw_bind, nw_blocks, nw_block_exclusive
    public :: nw_place, nw_distr, nw_describe, nw_distribute, nw_distr_free, nw_distr_status
    public :: nw_owner, nw_page_owner, nw_distr_cuts
    public :: nw_migrate_rows, nw_migrate_columns, nw_scatter, nw_gather
    public :: nw_nodes, nw_cpus, nw_cpu_node, nw_processors, nw_page_nodes, nw_histogram
    public :: nw_set_threads, nw_get_threads, nw_bind_thread, nw_bind_threads, nw_migrate_thread, nw_thread_node
    public :: nw_statistics, nw_get_statistics, nw_last_error, nw_version
    public :: nw_cuts, nw_exclusive, nw_part, nw_static, nw_static_inverse, nw_exclusive_begin, nw_next

    integer, parameter, public :: nw_ok = 0, nw_rounded = 1, nw_partly = 2, nw_not_done = 3, nw_stale = 4, &
        nw_invalid = -1, nw_no_memory = -2, nw_no_array = -3

    ! The unit in which an array is distributed, in Fortran's terms.
    integer, parameter, public :: nw_pages = 0, nw_columns = 1, nw_rows = 2, nw_items = 3

    enum, bind(c)
        enumerator :: first_touch_, cyclic_, skew_, prime_, random_, bind_all_, bind_block_, block_exclusive_, blocks_
    end enum

    ! A policy is made by one of the functions below. Then set further components, such as `p%nodes = [0, 2]`.
    type :: nw_policy
        integer :: kind = first_touch_
        integer :: unit = nw_pages
        integer(int64) :: block = 1
        integer(c_int), allocatable :: nodes(:)      ! not allocated: all
        integer(c_int), allocatable :: weights(:)    ! one for each node
        integer :: prime = 0
        integer(int64) :: seed = 0
        integer :: threads = 0                       ! 0: those of nw_set_threads
        integer, allocatable :: dimensions(:)        ! block-exclusive; not allocated: the last two
        integer :: granule = 0                       ! 0 automatic, 1 base pages, 2 huge pages
    end type

    ! The distribution of an array by a policy, from nw_describe; free it with nw_distr_free.
    type :: nw_distr
        private
        type(c_ptr) :: pointer = c_null_ptr
        integer :: rank = 0
        integer(int64) :: extents(4) = 1
    end type

    interface
        function nw_cpu_node(cpu) bind(c) result(node)
            import :: c_int
            integer(c_int), value :: cpu
            integer(c_int) :: node
        end function
        function nw_processors() bind(c) result(count)
            import :: c_int
            integer(c_int) :: count
        end function
        function nw_set_threads(threads) bind(c) result(in_force)
            import :: c_int
            integer(c_int), value :: threads
            integer(c_int) :: in_force
        end function
        function nw_get_threads() bind(c) result(threads)
            import :: c_int
            integer(c_int) :: threads
        end function
        function nw_bind_thread(thread) bind(c) result(status)
            import :: c_int
            integer(c_int), value :: thread
            integer(c_int) :: status
        end function
        function nw_bind_threads() bind(c) result(status)
            import :: c_int
            integer(c_int) :: status
        end function
        function nw_migrate_thread(tid, cpu) bind(c) result(status)
            import :: c_int
            integer(c_int), value :: tid, cpu
            integer(c_int) :: status
        end function
        function nw_thread_node(thread) bind(c) result(node)
            import :: c_int
            integer(c_int), value :: thread
            integer(c_int) :: node
        end function
        subroutine nw_get_statistics(statistics) bind(c)
            import :: nw_statistics
            type(nw_statistics), intent(out) :: statistics
        end subroutine
    end interface

    ! call nw_static(first, last, thread, threads, from, to): OpenMP's schedule(static).
    interface nw_static
        module procedure static_int32, static_int64
    end interface
    ! Likewise, but chunk k goes to thread threads - 1 - k.
    interface nw_static_inverse
        module procedure inverse_int32, inverse_int64
    end interface
    ! call nw_part(cuts, id, first, last, from, to): the indices of [first, last] in part `id`, which counts from 0.
    interface nw_part
        module procedure part_int32, part_int64
    end interface
    ! e = nw_exclusive_begin(first, last, cuts, id, thread, threads), then
    ! do while (nw_next(e, from, to)): a thread's blocks in part `id` of a block-exclusive sweep.
    interface nw_exclusive_begin
        module procedure begin_int32, begin_int64
    end interface
    interface nw_next
        module procedure next_int32, next_int64
    end interface

contains
    function nw_last_error() result(line)
        character(len=:), allocatable :: line
        line = fortran_text(c_last_error())
    end function

    function nw_version() result(version)
        character(len=:), allocatable :: version
        version = fortran_text(c_version())
    end function

    function fortran_text(from) result(line)
        type(c_ptr), intent(in) :: from
        character(len=:), allocatable :: line
        character(kind=c_char), pointer :: text(:)
        integer :: i
        call c_f_pointer(from, text, [c_strlen(from)])
        allocate (character(len=size(text)) :: line)
        do i = 1, size(text)
            line(i:i) = text(i)
        end do
    end function

    ! ---- Policies ------------------------------------------------------------------------------------

    pure function made(kind, unit, block) result(policy)
        integer, intent(in) :: kind, unit
        integer, intent(in), optional :: block
        type(nw_policy) :: policy
        policy%kind = kind
        policy%unit = unit
        if (present(block)) policy%block = block
    end function

    pure function nw_first_touch() result(policy)
        type(nw_policy) :: policy
        policy = made(first_touch_, nw_pages)
    end function
    pure function nw_cyclic(unit, block) result(policy)
        integer, intent(in) :: unit
        integer, intent(in), optional :: block
        type(nw_policy) :: policy
        policy = made(cyclic_, unit, block)
    end function
    pure function nw_block_cyclic(items) result(policy)
        integer, intent(in) :: items
        type(nw_policy) :: policy
        policy = made(cyclic_, nw_items, items)
    end function
    pure function nw_skew(unit, block) result(policy)
        integer, intent(in) :: unit
        integer, intent(in), optional :: block
        type(nw_policy) :: policy
        policy = made(skew_, unit, block)
    end function
    pure function nw_prime(unit, block, prime) result(policy)
        integer, intent(in) :: unit, block, prime
        type(nw_policy) :: policy
        policy = made(prime_, unit, block)
        policy%prime = prime
    end function
    pure function nw_random(unit, block, seed) result(policy)
        integer, intent(in) :: unit
        integer, intent(in), optional :: block, seed
        type(nw_policy) :: policy
        policy = made(random_, unit, block)
        if (present(seed)) policy%seed = seed
    end function
    pure function nw_bind_all() result(policy)
        type(nw_policy) :: policy
        policy = made(bind_all_, nw_pages)
    end function
    pure function nw_bind(unit) result(policy)
        integer, intent(in) :: unit
        type(nw_policy) :: policy
        policy = made(bind_block_, unit)
    end function
    pure function nw_blocks(unit) result(policy)
        integer, intent(in) :: unit
        type(nw_policy) :: policy
        policy = made(blocks_, unit)
    end function
    ! Cut along these dimensions, by default along the last two.
    pure function nw_block_exclusive(dimensions) result(policy)
        integer, intent(in), optional :: dimensions(:)
        type(nw_policy) :: policy
        policy = made(block_exclusive_, nw_items)
        if (present(dimensions)) policy%dimensions = dimensions
    end function

    ! The unit in C's terms, for an array of that rank: Fortran's columns are C's rows, and have the same number.
    ! In one dimension both are the items.
    pure integer function c_unit(unit, rank)
        integer, intent(in) :: unit, rank
        c_unit = unit
        if (rank == 1 .and. unit == nw_rows) c_unit = nw_columns
    end function

    ! The C structure of the policy, for an array of that rank; valid as long as `policy` exists.
    function c_policy_of(policy, rank) result(c)
        type(nw_policy), intent(in), target :: policy
        integer, intent(in) :: rank
        type(c_policy) :: c
        integer :: i
        c = c_policy(policy%kind, c_unit(policy%unit, rank), policy%block, c_null_ptr, 0, c_null_ptr, policy%prime, &
            policy%seed, policy%threads, 0, policy%granule)
        if (allocated(policy%nodes)) then
            c%nodes = c_loc(policy%nodes)
            c%node_count = size(policy%nodes)
        end if
        if (allocated(policy%weights)) c%weights = c_loc(policy%weights)
        if (.not. allocated(policy%dimensions)) return
        do i = 1, size(policy%dimensions)
            if (policy%dimensions(i) >= 1 .and. policy%dimensions(i) <= rank) then
                c%dimensions = ibset(c%dimensions, rank - policy%dimensions(i))
            else
                c%dimensions = ibset(c%dimensions, 30) ! C refuses it
            end if
        end do
    end function

    ! The rank of an array of the library, and its extents in Fortran's order; 0 if it is no array of the library.
    integer function known_rank(data, extents)
        type(c_ptr), intent(in) :: data
        integer(int64), intent(out), optional :: extents(4)
        type(c_shape) :: shape
        known_rank = 0
        if (c_shape_of(data, shape) /= nw_ok) return
        known_rank = shape%dimensions
        if (.not. present(extents)) return
        extents = 1
        extents(1:known_rank) = shape%extents(known_rank:1:-1)
    end function

    ! ---- Placing and moving ------------------------------------------------------------------------------

    integer function nw_place(array, policy) result(status)
        type(*), intent(inout), target :: array(..)
        type(nw_policy), intent(in), target :: policy
        status = c_place(c_loc(array), c_policy_of(policy, known_rank(c_loc(array))))
    end function

    integer function nw_forget(array) result(status)
        type(*), intent(inout), target :: array(..)
        status = c_forget(c_loc(array))
    end function

    ! Moves columns `first` to `first + count - 1` to a node once; the array's policy stays.
    integer function nw_migrate_columns(array, node, count, first) result(status)
        type(*), intent(inout), target :: array(..)
        integer, intent(in) :: node, count, first
        integer(int64) :: extents(4)
        integer :: rank
        rank = known_rank(c_loc(array), extents)
        status = nw_invalid
        if (outside('column', rank, extents, rank, count, first)) return
        status = c_migrate_rows(c_loc(array), node, unsigned(count), unsigned(first - 1))
    end function

    integer function nw_migrate_rows(array, node, count, first) result(status)
        type(*), intent(inout), target :: array(..)
        integer, intent(in) :: node, count, first
        integer(int64) :: extents(4)
        integer :: rank
        rank = known_rank(c_loc(array), extents)
        status = nw_invalid
        if (outside('row', rank, extents, max(rank - 1, 1), count, first)) return
        if (rank == 1) then
            status = c_migrate_rows(c_loc(array), node, unsigned(count), unsigned(first - 1))
        else
            status = c_migrate_columns(c_loc(array), node, unsigned(count), unsigned(first - 1))
        end if
    end function

    ! Whether some of the indices do not exist in the dimension; if so, sets the message. False for memory that is
    ! no array of the library, which C refuses.
    logical function outside(word, rank, extents, dimension, count, first)
        character(len=*), intent(in) :: word
        integer, intent(in) :: rank, dimension, count, first
        integer(int64), intent(in) :: extents(4)
        character(len=120) :: line
        outside = .false.
        if (rank == 0) return
        outside = .true.
        if (first < 1) then
            write (line, '(3a, i0, 3a)') 'there is no ', word, ' ', first, ': ', word, 's count from 1'
        else if (count < 0) then
            write (line, '(i0, 3a)') count, ' ', word, 's: give at least 0'
        else if (first - 1_int64 + count > extents(dimension)) then
            write (line, '(2a, i0, a, i0, a, i0)') word, 's ', first, ' to ', first - 1_int64 + count, &
                ', of an array that has ', extents(dimension)
        else
            outside = .false.
            return
        end if
        call c_fail(nw_invalid, line)
    end function

    ! C's counts are unsigned: a negative number becomes one that is too large, which C refuses.
    pure integer(c_size_t) function unsigned(count)
        integer, intent(in) :: count
        unsigned = merge(int(count, c_size_t), huge(1_c_size_t), count >= 0)
    end function

    ! Moves equal contiguous parts to the nodes; without a list, to all nodes.
    integer function nw_scatter(array, nodes) result(status)
        type(*), intent(inout), target :: array(..)
        integer(c_int), intent(in), optional, target, contiguous :: nodes(:)
        if (present(nodes)) then
            status = c_scatter(c_loc(array), c_loc(nodes), size(nodes))
        else
            status = c_scatter(c_loc(array), c_null_ptr, 0)
        end if
    end function

    integer function nw_gather(array, node) result(status)
        type(*), intent(inout), target :: array(..)
        integer, intent(in) :: node
        status = c_gather(c_loc(array), node)
    end function

    ! Copies the array to the nodes; without a list, to all that have CPUs.
    integer function nw_replicate(array, nodes) result(status)
        type(*), intent(inout), target :: array(..)
        integer(c_int), intent(in), optional, target, contiguous :: nodes(:)
        if (present(nodes)) then
            status = c_replicate_on(c_loc(array), c_loc(nodes), size(nodes))
        else
            status = c_replicate(c_loc(array))
        end if
    end function

    ! What the copies take, and their pages by node, from 0.
    integer function nw_copies_of(array, copies, pages) result(status)
        type(*), intent(in), target :: array(..)
        type(nw_copies), intent(out) :: copies
        integer(c_size_t), allocatable, intent(out), optional :: pages(:)
        integer(c_size_t), allocatable :: by_node(:)
        allocate (by_node(0:maxval(nw_nodes())), source=0_c_size_t)
        status = c_copies_of(c_loc(array), copies, by_node, size(by_node))
        if (present(pages)) call move_alloc(by_node, pages)
    end function

    ! nw_stale: the array was written to after it was copied.
    integer function nw_check_copies(array) result(status)
        type(*), intent(in), target :: array(..)
        status = c_check_copies(c_loc(array))
    end function

    ! Frees the copies, which no thread may read any more.
    integer function nw_drop_copies(array) result(status)
        type(*), intent(inout), target :: array(..)
        status = c_drop_copies(c_loc(array))
    end function

    ! ---- Distributions --------------------------------------------------------------------------------------

    ! If the policy does not fit the array, the status is negative and there is no distribution.
    integer function nw_describe(distr, array, policy) result(status)
        type(nw_distr), intent(inout) :: distr
        type(*), intent(inout), target :: array(..)
        type(nw_policy), intent(in), target :: policy
        call nw_distr_free(distr)
        distr%rank = known_rank(c_loc(array), distr%extents)
        distr%pointer = c_describe(c_loc(array), c_policy_of(policy, distr%rank))
        status = merge(nw_ok, merge(nw_no_array, nw_invalid, distr%rank == 0), c_associated(distr%pointer))
    end function

    integer function nw_distribute(distr) result(status)
        type(nw_distr), intent(in) :: distr
        status = c_distribute(distr%pointer)
    end function

    subroutine nw_distr_free(distr)
        type(nw_distr), intent(inout) :: distr
        if (c_associated(distr%pointer)) call c_distr_free(distr%pointer)
        distr%pointer = c_null_ptr
    end subroutine

    integer function nw_distr_status(distr) result(status)
        type(nw_distr), intent(in) :: distr
        status = c_distr_status(distr%pointer)
    end function

    ! The node of an item, by its indices from 1.
    integer function nw_owner(distr, indices) result(node)
        type(nw_distr), intent(in) :: distr
        integer, intent(in) :: indices(:)
        integer(int64) :: item, stride
        integer :: d
        node = nw_invalid
        if (size(indices) /= distr%rank .or. any(indices < 1 .or. indices > distr%extents(:distr%rank))) return
        item = 0
        stride = 1
        do d = 1, distr%rank
            item = item + stride*(indices(d) - 1)
            stride = stride*distr%extents(d)
        end do
        node = c_distr_item_node(distr%pointer, item)
    end function

    ! The node of a page of the array; pages count from 1.
    integer function nw_page_owner(distr, page) result(node)
        type(nw_distr), intent(in) :: distr
        integer(int64), intent(in) :: page
        node = c_distr_page_node(distr%pointer, page - 1)
    end function

    ! How a dimension is cut. Its indices begin at `lower`, by default 1.
    function nw_distr_cuts(distr, dimension, lower) result(cuts)
        type(nw_distr), intent(in) :: distr
        integer, intent(in) :: dimension
        integer, intent(in), optional :: lower
        type(nw_cuts) :: cuts
        integer :: from
        from = 1
        if (present(lower)) from = lower
        cuts = c_distr_cuts(distr%pointer, distr%rank - dimension)
        cuts%begin = cuts%begin + from
        cuts%end = cuts%end + from
    end function

    ! ---- Queries -----------------------------------------------------------------------------------------------

    function nw_nodes() result(nodes)
        integer(c_int), allocatable :: nodes(:)
        integer(c_int) :: none(1)
        allocate (nodes(c_nodes(none, 0)))
        if (c_nodes(nodes, size(nodes)) /= size(nodes)) nodes = -1
    end function

    function nw_cpus() result(cpus)
        integer(c_int), allocatable :: cpus(:)
        integer(c_int) :: none(1)
        allocate (cpus(c_cpus(none, 0)))
        if (c_cpus(cpus, size(cpus)) /= size(cpus)) cpus = -1
    end function

    ! The present node of each page; -1: not touched. Of size 0 if there is no such array.
    function nw_page_nodes(array) result(nodes)
        type(*), intent(in), target :: array(..)
        integer(c_int), allocatable :: nodes(:)
        type(c_shape) :: shape
        shape%pages = 0
        if (c_shape_of(c_loc(array), shape) /= nw_ok) shape%pages = 0
        allocate (nodes(shape%pages), source=-1)
        if (c_page_nodes(c_loc(array), nodes, shape%pages) < 0) nodes = -1
    end function

    ! Pages on each node, pages(0:), and how many are not touched.
    integer function nw_histogram(array, pages, untouched) result(status)
        type(*), intent(in), target :: array(..)
        integer(c_size_t), allocatable, intent(out) :: pages(:)
        integer(c_size_t), intent(out), optional :: untouched
        integer(c_size_t) :: rest
        allocate (pages(0:maxval(nw_nodes())), source=0_c_size_t)
        rest = 0
        status = c_histogram(c_loc(array), pages, size(pages), rest)
        if (present(untouched)) untouched = rest
    end function

    ! ---- Schedules ------------------------------------------------------------------------------------------------

    pure subroutine part_int64(cuts, id, first, last, from, to)
        type(nw_cuts), intent(in) :: cuts
        integer, intent(in) :: id
        integer(int64), intent(in) :: first, last
        integer(int64), intent(out) :: from, to
        type(c_range) :: range
        range = c_part(cuts, id)
        from = max(range%begin, first)
        to = min(range%end - 1, last)
    end subroutine
    pure subroutine part_int32(cuts, id, first, last, from, to)
        type(nw_cuts), intent(in) :: cuts
        integer, intent(in) :: id
        integer(int32), intent(in) :: first, last
        integer(int32), intent(out) :: from, to
        integer(int64) :: f, t
        call part_int64(cuts, id, int(first, int64), int(last, int64), f, t)
        from = int(f, int32)
        to = int(t, int32)
    end subroutine

    pure subroutine static_int64(first, last, thread, threads, from, to)
        integer(int64), intent(in) :: first, last
        integer, intent(in) :: thread, threads
        integer(int64), intent(out) :: from, to
        call part_int64(nw_cuts(first, last + 1, threads), thread, first, last, from, to)
    end subroutine
    pure subroutine static_int32(first, last, thread, threads, from, to)
        integer(int32), intent(in) :: first, last
        integer, intent(in) :: thread, threads
        integer(int32), intent(out) :: from, to
        call part_int32(nw_cuts(first, last + 1_int64, threads), thread, first, last, from, to)
    end subroutine

    pure subroutine inverse_int64(first, last, thread, threads, from, to)
        integer(int64), intent(in) :: first, last
        integer, intent(in) :: thread, threads
        integer(int64), intent(out) :: from, to
        call static_int64(first, last, threads - 1 - thread, threads, from, to)
    end subroutine
    pure subroutine inverse_int32(first, last, thread, threads, from, to)
        integer(int32), intent(in) :: first, last
        integer, intent(in) :: thread, threads
        integer(int32), intent(out) :: from, to
        call static_int32(first, last, threads - 1 - thread, threads, from, to)
    end subroutine

    pure function begin_int64(first, last, cuts, id, thread, threads) result(exclusive)
        integer(int64), intent(in) :: first, last
        type(nw_cuts), intent(in) :: cuts
        integer, intent(in) :: id, thread, threads
        type(nw_exclusive) :: exclusive
        exclusive = c_exclusive_begin(first, last + 1, cuts, id, thread, threads)
    end function
    pure function begin_int32(first, last, cuts, id, thread, threads) result(exclusive)
        integer(int32), intent(in) :: first, last
        type(nw_cuts), intent(in) :: cuts
        integer, intent(in) :: id, thread, threads
        type(nw_exclusive) :: exclusive
        exclusive = c_exclusive_begin(int(first, int64), last + 1_int64, cuts, id, thread, threads)
    end function

    logical function next_int64(exclusive, from, to) result(more)
        type(nw_exclusive), intent(inout) :: exclusive
        integer(int64), intent(out) :: from, to
        more = c_exclusive_next(exclusive) /= 0
        from = exclusive%begin
        to = exclusive%end - 1
    end function
    logical function next_int32(exclusive, from, to) result(more)
        type(nw_exclusive), intent(inout) :: exclusive
        integer(int32), intent(out) :: from, to
        more = c_exclusive_next(exclusive) /= 0
        from = int(exclusive%begin, int32)
        to = int(exclusive%end - 1, int32)
    end function
end module

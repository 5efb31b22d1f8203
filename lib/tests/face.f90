! The Fortran module: arrays of every type and rank, policies in Fortran's words, schedules, messages.
program face
    use nodewise
    use omp_lib
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use, intrinsic :: iso_c_binding, only: c_size_t, c_int
    implicit none
    integer :: passed = 0, failed = 0

    call arrays_of_every_type_and_rank
    call refused_not_crashed
    call columns_are_contiguous
    call policies
    call adopted_and_copied
    call schedules_cover_once
    call a_matched_sweep_is_the_serial_one
    call block_exclusive_meets_owners_in_three_dimensions
    call threads
    print '(i0, a, i0, a)', passed, ' passed, ', failed, ' failed'
    if (failed > 0) stop 1

contains
    subroutine check(holds, law)
        logical, intent(in) :: holds
        character(*), intent(in) :: law
        if (holds) then
            passed = passed + 1
        else
            failed = failed + 1
            print '(4a)', 'FAILED face.f90: ', law, '; the last message: ', nw_last_error()
        end if
    end subroutine

    subroutine arrays_of_every_type_and_rank
        real(real64), pointer :: d1(:), d2(:, :), d3(:, :, :), d4(:, :, :, :)
        real(real32), pointer :: s1(:), s2(:, :), s3(:, :, :), s4(:, :, :, :)
        integer(int32), pointer :: i1(:), i2(:, :), i3(:, :, :), i4(:, :, :, :)
        complex(real64), pointer :: c1(:), c2(:, :), c3(:, :, :), c4(:, :, :, :)
        call nw_allocate(d1, 7); call nw_allocate(d2, 7, 5); call nw_allocate(d3, 7, 5, 3); call nw_allocate(d4, 7, 5, 3, 2)
        call nw_allocate(s1, 7); call nw_allocate(s2, 7, 5); call nw_allocate(s3, 7, 5, 3); call nw_allocate(s4, 7, 5, 3, 2)
        call nw_allocate(i1, 7); call nw_allocate(i2, 7, 5); call nw_allocate(i3, 7, 5, 3); call nw_allocate(i4, 7, 5, 3, 2)
        call nw_allocate(c1, 7); call nw_allocate(c2, 7, 5); call nw_allocate(c3, 7, 5, 3); call nw_allocate(c4, 7, 5, 3, 2)
        call check(all(shape(d4) == [7, 5, 3, 2]) .and. all(d4 == 0), 'real(8) is shaped and zeroed')
        call check(size(d1) == 7 .and. size(d2) == 35 .and. size(d3) == 105, 'real(8) of other ranks')
        call check(all(s4 == 0) .and. size(s1) + size(s2) + size(s3) == 147, 'real(4)')
        call check(all(i4 == 0) .and. size(i1) + size(i2) + size(i3) == 147, 'integer(4)')
        call check(all(c4 == 0) .and. size(c1) + size(c2) + size(c3) == 147, 'complex(8)')
        c3(7, 5, 3) = (1, 2)
        call check(c3(7, 5, 3) == (1, 2), 'written')
        call nw_free(d1); call nw_free(d2); call nw_free(d3); call nw_free(d4)
        call nw_free(s1); call nw_free(s2); call nw_free(s3); call nw_free(s4)
        call nw_free(i1); call nw_free(i2); call nw_free(i3); call nw_free(i4)
        call nw_free(c1); call nw_free(c2); call nw_free(c3); call nw_free(c4)
        call check(.not. associated(d1) .and. .not. associated(c4), 'not associated afterwards')
        call nw_allocate(d1, 1000_int64)
        call check(size(d1) == 1000, 'long extents')
        call nw_free(d1)
        call nw_allocate(c3, 7_int64, 5_int64, nz=3_int64)
        call check(all(shape(c3) == [7, 5, 3]), 'long extents of three dimensions')
        call nw_free(c3)
    end subroutine

    subroutine refused_not_crashed
        real(real64), pointer :: a(:), b(:, :)
        real(real64), target :: foreign(10)
        type(nw_distr) :: distr
        integer :: status
        call nw_allocate(a, 0)
        call check(.not. associated(a) .and. len(nw_last_error()) > 0, 'no items')
        call nw_allocate(a, -5)
        call check(.not. associated(a), 'a negative extent')
        call nw_allocate(a, huge(1_int64)/4)
        call check(.not. associated(a), 'an overflowing size')
        nullify (a)
        call nw_free(a, status)
        call check(status == nw_no_array, 'nothing to free')
        foreign = 1
        call check(nw_place(foreign, nw_bind_all()) == nw_no_array, 'a foreign array')
        call check(nw_describe(distr, foreign, nw_bind_all()) == nw_no_array, 'a foreign array described')
        call check(nw_distribute(distr) < 0, 'no distribution')
        call nw_allocate(b, 64, 32)
        call check(nw_migrate_columns(b, 0, 2, 32) == nw_invalid, 'columns beyond the array')
        call check(nw_migrate_columns(b, 0, 1, 0) == nw_invalid, 'columns before the array')
        call check(nw_last_error() == 'there is no column 0: columns count from 1', nw_last_error())
        call check(nw_migrate_columns(b, 0, 3, 999) == nw_invalid, 'columns beyond the array')
        call check(nw_last_error() == 'columns 999 to 1001, of an array that has 32', nw_last_error())
        call check(nw_migrate_rows(b, 0, 2, 64) == nw_invalid, 'rows beyond the array')
        call check(nw_last_error() == 'rows 64 to 65, of an array that has 64', nw_last_error())
        call check(nw_migrate_rows(b, 0, -1, 1) == nw_invalid, 'a negative count')
        call check(nw_migrate_rows(b, 4095, 1, 1) == nw_invalid, 'a node that is not there')
        call check(nw_migrate_rows(foreign, 0, 1, 0) == nw_no_array, 'rows of a foreign array')
        call check(nw_describe(distr, b, nw_block_exclusive([3])) == nw_invalid, 'a dimension beyond the array')
        call check(nw_place(b, on(nw_cyclic(nw_columns), [4095])) == nw_invalid, 'no such node')
        call nw_free(b)
    end subroutine

    function on(policy, nodes) result(other)
        type(nw_policy), intent(in) :: policy
        integer(c_int), intent(in) :: nodes(:)
        type(nw_policy) :: other
        other = policy
        other%nodes = nodes
    end function

    ! Blocks of columns are pieces of memory, blocks of rows are parts of every column.
    subroutine columns_are_contiguous
        real(real64), pointer :: a(:, :)
        type(nw_distr) :: columns, rows
        integer :: i, j, n, status
        logical :: right
        integer(c_int), allocatable :: nodes(:)
        nodes = nw_nodes()
        n = size(nodes)
        call nw_allocate(a, 60, 50)
        status = nw_describe(columns, a, nw_cyclic(nw_columns, 4))
        right = status == nw_ok
        status = nw_describe(rows, a, nw_cyclic(nw_rows, 4))
        right = right .and. status == nw_ok
        do j = 1, 50
            do i = 1, 60
                right = right .and. nw_owner(columns, [i, j]) == nodes(1 + mod((j - 1)/4, n))
                right = right .and. nw_owner(rows, [i, j]) == nodes(1 + mod((i - 1)/4, n))
            end do
        end do
        call check(right, 'rows and columns are what a Fortran programmer calls so')
        call check(nw_owner(rows, [61, 1]) == nw_invalid, 'an item beyond the array')
        call nw_distr_free(columns)
        call nw_distr_free(rows)
        call nw_free(a)
    end subroutine

    subroutine policies
        real(real64), pointer :: a(:, :, :), v(:)
        integer(c_size_t), allocatable :: pages(:)
        integer(c_size_t) :: untouched
        type(nw_policy) :: weighted
        call nw_allocate(a, 64, 64, 8)
        call check(nw_place(a, nw_first_touch()) >= 0, 'first touch')
        call check(nw_place(a, nw_cyclic(nw_pages)) >= 0, 'cyclic')
        call check(nw_place(a, nw_block_cyclic(4096)) >= 0, 'block-cyclic')
        call check(nw_place(a, nw_skew(nw_rows, 2)) >= 0, 'skew')
        call check(nw_place(a, nw_prime(nw_pages, 1, 7)) >= 0, 'prime')
        call check(nw_place(a, nw_random(nw_columns, 1, 42)) >= 0, 'random')
        call check(nw_place(a, nw_bind_all()) >= 0, 'bind-all')
        call check(nw_place(a, nw_bind(nw_columns)) >= 0, 'bind-block')
        call check(nw_place(a, nw_blocks(nw_columns)) >= 0, 'blocks')
        call check(nw_place(a, nw_block_exclusive([1, 3])) >= 0, 'block-exclusive')
        weighted = on(nw_cyclic(nw_pages), nw_nodes())
        weighted%weights = weighted%nodes + 1
        call check(nw_place(a, weighted) >= 0, 'weights')
        a = 1
        call check(size(nw_page_nodes(a)) == 64 .and. all(nw_page_nodes(a) >= 0), 'pages on nodes')
        call check(nw_histogram(a, pages, untouched) >= 0, 'the histogram')
        call check(sum(pages) == 64 .and. untouched == 0 .and. lbound(pages, 1) == 0, 'all pages in it')
        call check(nw_scatter(a) >= 0 .and. nw_scatter(a, nw_nodes()) >= 0, 'scatter')
        call check(nw_gather(a, int(minval(nw_nodes()))) >= 0, 'gather')
        call check(nw_migrate_columns(a, int(minval(nw_nodes())), 2, 3) >= 0, 'columns migrated')
        call check(all(a == 1), 'contents stay')
        call nw_free(a)
        call nw_allocate(v, 100000)
        call check(nw_place(v, nw_cyclic(nw_rows, 512)) >= 0 .and. nw_place(v, nw_cyclic(nw_columns, 512)) >= 0, &
            'a vector has rows, or columns')
        call nw_free(v)
    end subroutine

    subroutine adopted_and_copied
        real(real64), allocatable, target :: here(:, :)
        real(real64), pointer :: a(:, :), near(:, :), flat(:), alias(:, :)
        real(real32), pointer :: short(:, :)
        integer(c_size_t), allocatable :: pages(:)
        integer, allocatable :: everywhere(:)
        type(nw_copies) :: copies
        integer :: status
        allocate (here(100, 100), source=2._real64)
        call check(nw_adopt(here(1:50, :)) < 0, 'not one piece of memory')
        call check(nw_adopt(here) == nw_ok, 'adopted')
        call check(nw_place(here, nw_cyclic(nw_columns)) >= 0 .and. all(here == 2), 'placed')
        alias => here
        call nw_free(alias, status)
        call check(status == nw_invalid .and. associated(alias), 'what was not freed stays')
        call check(nw_forget(here) == nw_ok, 'forgotten')
        call check(nw_forget(here) == nw_no_array, 'forgotten once')
        call nw_allocate(a, 30, 20)
        a = 3
        call check(nw_replicate(a) >= 0, 'replicated')
        call nw_nearest(a, near)
        call check(all(shape(near) == [30, 20]) .and. all(near == 3), 'the nearest copy')
        call check(nw_copies_of(a, copies, pages) == nw_ok .and. lbound(pages, 1) == 0, 'what the copies take')
        call check(copies%bytes >= copies%count*600*8 .and. ((sum(pages) > 0) .eqv. (copies%count > 0)), &
            'pages by node')
        call check(nw_check_copies(a) == merge(nw_ok, nw_not_done, copies%count > 0), 'the copies are the array')
        a(2, 1) = 4
        if (copies%count > 0) call check(nw_check_copies(a) == nw_stale, 'written to')
        call check(nw_drop_copies(a) == nw_ok .and. nw_copies_of(a, copies) == nw_ok .and. copies%count == 0, 'dropped')
        call check(nw_replicate(a, [99999]) == nw_invalid, 'on no such node')
        everywhere = nw_nodes()
        call check(nw_replicate(a, everywhere(1:1)) >= 0, 'on a chosen node')
        call nw_nearest(a, flat)
        call check(.not. associated(flat) .and. index(nw_last_error(), 'of rank 1') > 0, 'a copy of another rank')
        call nw_nearest(a, short)
        call check(.not. associated(short) .and. index(nw_last_error(), 'items of 4 bytes') > 0, 'or of another type')
        call nw_nearest(here, near)
        call check(.not. associated(near), 'of no array')
        call nw_free(a)
    end subroutine

    ! With bounds of either kind of integer, in teams of odd sizes.
    subroutine schedules_cover_once
        integer :: first, last, team, id
        integer, allocatable :: plain(:), inverse(:), exclusive(:), openmp(:), mine(:)
        logical :: right, same
        right = .true.
        same = .true.
        do team = 1, 11, 2
            do last = -3, 60, 7
                first = -1
                id = mod(last + 3, 5)
                allocate (plain(first:max(first, last)), source=0)
                inverse = plain
                exclusive = plain
                openmp = plain
                mine = plain
                inverse(:) = 0
                !$omp parallel num_threads(team)
                call count(first, last, id, plain, inverse, exclusive, mine)
                !$omp end parallel
                !$omp parallel do num_threads(team) schedule(static)
                do id = first, last
                    openmp(lbound(openmp, 1) + id - first) = omp_get_thread_num()
                end do
                !$omp end parallel do
                if (last >= first) then
                    right = right .and. all(plain == 1) .and. all(inverse == 1) .and. all(exclusive == 1)
                    same = same .and. all(mine == openmp)
                else
                    right = right .and. all(plain == 0) .and. all(inverse == 0) .and. all(exclusive == 0)
                end if
                deallocate (plain)
            end do
        end do
        call check(right, 'each iteration once')
        call check(same, 'static is OpenMP''s own')
    end subroutine

    subroutine count(first, last, id, plain, inverse, exclusive, mine)
        integer, intent(in) :: first, last, id
        integer, intent(inout) :: plain(first:), inverse(first:), exclusive(first:), mine(first:)
        integer :: from, to, i, thread, team
        integer(int64) :: long_from, long_to
        type(nw_exclusive) :: e
        thread = omp_get_thread_num()
        team = omp_get_num_threads()
        call nw_static(first, last, thread, team, from, to)
        do i = from, to
            plain(i) = plain(i) + 1
            mine(i) = thread
        end do
        call nw_static_inverse(int(first, int64), int(last, int64), thread, team, long_from, long_to)
        do i = int(long_from), int(long_to)
            inverse(i) = inverse(i) + 1
        end do
        e = nw_exclusive_begin(first, last, nw_cuts(first, last + 1, 4), id, thread, team)
        do while (nw_next(e, from, to))
            do i = from, to
                exclusive(i) = exclusive(i) + 1
            end do
        end do
    end subroutine

    ! Each column depends on the one before, so parts of columns are computed one after the other, and rows in
    ! parallel.
    subroutine a_matched_sweep_is_the_serial_one
        integer, parameter :: n = 43, m = 37
        real(real64), pointer :: u(:, :)
        real(real64) :: serial(n, m)
        type(nw_distr) :: distr
        type(nw_cuts) :: rows, columns
        type(nw_exclusive) :: e
        integer :: i, j, id, status, from, to, first, last
        call random_number(serial)
        call nw_allocate(u, n, m)
        u = serial
        do j = 2, m
            serial(2:n - 1, j) = serial(2:n - 1, j) + 0.5*serial(2:n - 1, j - 1)
        end do
        status = nw_describe(distr, u, nw_block_exclusive())
        rows = nw_distr_cuts(distr, 1)
        columns = nw_distr_cuts(distr, 2)
        call check(rows%begin == 1 .and. rows%end == n + 1 .and. columns%end == m + 1, 'cuts begin at 1')
        call check(rows%parts == nw_processors() .and. columns%parts == nw_processors(), 'a part a processor')
        !$omp parallel num_threads(5) private(id, e, i, j, from, to, first, last)
        do id = 0, columns%parts - 1
            call nw_part(columns, id, 2, m, first, last)
            e = nw_exclusive_begin(2, n - 1, rows, id, omp_get_thread_num(), omp_get_num_threads())
            do while (nw_next(e, from, to))
                do j = first, last
                    do i = from, to
                        u(i, j) = u(i, j) + 0.5*u(i, j - 1)
                    end do
                end do
            end do
            !$omp barrier
        end do
        !$omp end parallel
        call check(all(u == serial), 'the same to the last bit')
        call nw_distr_free(distr)
        call nw_free(u)
    end subroutine

    subroutine block_exclusive_meets_owners_in_three_dimensions
        real(real64), pointer :: a(:, :, :)
        type(nw_distr) :: distr
        type(nw_cuts) :: cuts(3)
        integer, parameter :: extents(3) = [13, 9, 11]
        integer :: block(3), at(3), i, j, k, d, p, from, to
        integer(c_int), allocatable :: nodes(:)
        logical :: right
        call nw_allocate(a, extents(1), extents(2), extents(3))
        right = nw_describe(distr, a, nw_block_exclusive([1, 3])) == nw_ok
        nodes = nw_nodes()
        do d = 1, 3
            cuts(d) = nw_distr_cuts(distr, d)
        end do
        right = right .and. cuts(2)%parts == 1 .and. cuts(1)%parts == nw_processors()
        do k = 1, extents(3)
            do j = 1, extents(2)
                do i = 1, extents(1)
                    at = [i, j, k]
                    do d = 1, 3
                        do p = 0, cuts(d)%parts - 1
                            call nw_part(cuts(d), p, 1, extents(d), from, to)
                            if (from <= at(d) .and. at(d) <= to) block(d) = p
                        end do
                    end do
                    right = right .and. nw_owner(distr, at) == nodes(1 + mod(block(1) + block(3), nw_processors()))
                end do
            end do
        end do
        call check(right, 'a Latin square over the first and the third dimension')
        call nw_distr_free(distr)
        call nw_free(a)
    end subroutine

    subroutine threads
        type(nw_statistics) :: statistics
        integer :: worst
        worst = 0
        call check(nw_set_threads(3) == 3 .and. nw_get_threads() == 3, 'three threads')
        !$omp parallel num_threads(3) reduction(max: worst)
        worst = nw_bind_thread(omp_get_thread_num())
        !$omp end parallel
        call check(worst == nw_ok .or. worst == nw_not_done, 'bound, or told why not')
        call check(nw_bind_thread(3) == nw_invalid, 'a thread too many')
        call check(any(nw_nodes() == nw_thread_node(2)), 'a thread''s node')
        call check(any(nw_cpus() >= 0) .and. nw_cpu_node(minval(nw_cpus())) >= 0, 'CPUs')
        call nw_get_statistics(statistics)
        call check(statistics%thread_seconds >= 0 .and. statistics%threads_moved >= 0, 'statistics')
        call check(nw_set_threads(0) >= 1, 'the default again')
    end subroutine
end program

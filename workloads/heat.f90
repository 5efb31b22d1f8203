! The heat equation on a square by alternating directions (Peaceman and Rachford, 1955): half a step
! implicit along the columns, half a step along the rows. Fortran's columns are contiguous.
!
! Each half solves tridiagonal systems, one a column or one a row, all independent: the first half works
! on columns in parallel, the second on rows. So both arrays have two patterns that no one distribution
! by columns or by rows suits. In the form `matched` they lie block-exclusive, and each half goes through
! the square in as many parts as there are processors, every thread on blocks of its own node.
!
! Verified: the start is a sum of two eigenvectors of both directions, so the exact result of this very
! scheme is known.
module heat_options
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    integer, parameter :: small = 256, largest = 65536, default_size = 2048, default_iterations = 20

    type :: options
        logical :: parallel = .false., matched = .false.
        integer :: size = default_size, iterations = default_iterations
    end type

    interface
        subroutine leave(status) bind(c, name='exit')
            import :: c_int
            integer(c_int), value :: status
        end subroutine
    end interface

contains
    subroutine give_up(what, where)
        character(*), intent(in) :: what, where
        write (error_unit, '(4a)') 'heat: ', what, where, '; try --help'
        call leave(2)
    end subroutine

    subroutine print_help
        print '(a)', 'heat: the heat equation on a square by alternating directions, in Fortran', &
            'usage: heat [--init master|parallel] [--size N|small] [--iterations N] [--form F] [--help]', &
            '  --init        who touches the arrays first (master)'
        print '(3(a, i0), a)', '  --size        points on a side (', default_size, '; small is ', small, ')'
        print '(a, i0, a)', '  --iterations  how often (', default_iterations, ')'
        print '(a)', '  --form        default, matched (default)'
        call leave(0)
    end subroutine

    integer function number(text, most)
        character(*), intent(in) :: text
        integer, intent(in) :: most
        integer :: wrong
        number = 0
        wrong = verify(text, '0123456789')
        if (wrong == 0) read (text, *, iostat=wrong) number
        if (wrong == 0 .and. (number < 1 .or. number > most)) wrong = 1
        if (wrong /= 0) call give_up('not a number in range: ', text)
    end function

    logical function chosen(name, text, usual, other)
        character(*), intent(in) :: name, text, usual, other
        chosen = text == other
        if (.not. chosen .and. text /= usual) call give_up(name//' is '//usual//' or '//other//', not ', text)
    end function

    function argument(i) result(text)
        integer, intent(in) :: i
        character(:), allocatable :: text
        integer :: length
        call get_command_argument(i, length=length)
        allocate (character(length) :: text)
        call get_command_argument(i, text)
    end function

    function parsed() result(o)
        type(options) :: o
        character(:), allocatable :: name, value
        integer :: i
        do i = 1, command_argument_count(), 2
            name = argument(i)
            if (name == '--help') call print_help
            if (all(name /= ['--init      ', '--size      ', '--iterations', '--form      '])) &
                call give_up('unknown option: ', name)
            if (i == command_argument_count()) call give_up('a value is missing after ', name)
            value = argument(i + 1)
            select case (name)
            case ('--init')
                o%parallel = chosen(name, value, 'master', 'parallel')
            case ('--form')
                o%matched = chosen(name, value, 'default', 'matched')
            case ('--iterations')
                o%iterations = number(value, 1000000)
            case ('--size')
                if (value == 'small') then
                    o%size = small
                else
                    o%size = number(value, largest)
                end if
            end select
        end do
    end function
end module

! The square of numbers and what is done with it, always in sweeps. Each point's operations are the same and
! in the same order whoever does them: results are equal to the last bit.
module heat_sweeps
    use nodewise
    use omp_lib
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none

    real(real64), parameter :: a = 0.9 ! diffusivity times half a time step over the square of the distance
    integer :: n
    real(real64), pointer, contiguous :: u(:, :), w(:, :)
    type(nw_cuts) :: rows, columns ! in one part each, or as the arrays are distributed

    ! Of 1 + a A, where A has 2 on its diagonal and -1 beside it: a, but 0 where there is no neighbour; and
    ! the diagonal's inverse after elimination.
    real(real64), allocatable :: before(:), after(:), inverse(:)

    ! The exact result is this much of mode (1, 1) and of mode (3, 2).
    real(real64) :: ones, threes
    real(real64), allocatable :: first(:), second(:), third(:)
    real(real64), allocatable :: sums(:), worst(:) ! by column

    abstract interface
        ! Rows `top` to `bottom` of columns `left` to `right`.
        subroutine work_on(top, bottom, left, right)
            integer, intent(in) :: top, bottom, left, right
        end subroutine
    end interface

contains
    ! Every thread of a team calls these. The square's columns in parallel, down their length in parts...
    subroutine sweep_down(work, backwards)
        procedure(work_on) :: work
        logical, intent(in) :: backwards
        integer :: k, id, top, bottom, left, right
        type(nw_exclusive) :: mine
        do k = 0, rows%parts - 1
            id = merge(rows%parts - 1 - k, k, backwards)
            call nw_part(rows, id, 1, n, top, bottom)
            mine = nw_exclusive_begin(1, n, columns, id, omp_get_thread_num(), omp_get_num_threads())
            do while (nw_next(mine, left, right))
                call work(top, bottom, left, right)
            end do
            !$omp barrier
        end do
    end subroutine

    ! ... and its rows in parallel, across.
    subroutine sweep_across(work, backwards)
        procedure(work_on) :: work
        logical, intent(in) :: backwards
        integer :: k, id, top, bottom, left, right
        type(nw_exclusive) :: mine
        do k = 0, columns%parts - 1
            id = merge(columns%parts - 1 - k, k, backwards)
            call nw_part(columns, id, 1, n, left, right)
            mine = nw_exclusive_begin(1, n, rows, id, omp_get_thread_num(), omp_get_num_threads())
            do while (nw_next(mine, top, bottom))
                call work(top, bottom, left, right)
            end do
            !$omp barrier
        end do
    end subroutine

    subroutine step
        call sweep_down(eliminate_columns, .false.)
        call sweep_down(substitute_columns, .true.)
        call sweep_across(eliminate_rows, .false.)
        call sweep_across(substitute_rows, .true.)
    end subroutine

    ! Explicit across, implicit down.
    subroutine eliminate_columns(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: i, j
        do j = left, right
            do i = top, bottom
                w(i, j) = (1 - 2*a)*u(i, j) + before(j)*u(i, max(j - 1, 1)) + after(j)*u(i, min(j + 1, n))
                w(i, j) = (w(i, j) + before(i)*w(max(i - 1, 1), j))*inverse(i)
            end do
        end do
    end subroutine

    subroutine substitute_columns(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: i, j
        do j = left, right
            do i = bottom, top, -1
                w(i, j) = w(i, j) + after(i)*inverse(i)*w(min(i + 1, n), j)
            end do
        end do
    end subroutine

    ! Explicit down, implicit across.
    subroutine eliminate_rows(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: i, j
        do j = left, right
            do i = top, bottom
                u(i, j) = (1 - 2*a)*w(i, j) + before(i)*w(max(i - 1, 1), j) + after(i)*w(min(i + 1, n), j)
                u(i, j) = (u(i, j) + before(j)*u(i, max(j - 1, 1)))*inverse(j)
            end do
        end do
    end subroutine

    subroutine substitute_rows(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: i, j
        do j = right, left, -1
            do i = top, bottom
                u(i, j) = u(i, j) + after(j)*inverse(j)*u(i, min(j + 1, n))
            end do
        end do
    end subroutine

    subroutine begin(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: j
        do j = left, right
            u(top:bottom, j) = first(top:bottom)*first(j) + 0.5*third(top:bottom)*second(j)
            w(top:bottom, j) = 0
        end do
    end subroutine

    subroutine compare(top, bottom, left, right)
        integer, intent(in) :: top, bottom, left, right
        integer :: i, j
        do j = left, right
            do i = top, bottom
                sums(j) = sums(j) + u(i, j)
                worst(j) = max(worst(j), abs(u(i, j) - ones*first(i)*first(j) - threes*third(i)*second(j)))
            end do
        end do
    end subroutine

    subroutine eliminate
        integer :: i
        allocate (before(n), after(n), inverse(n), source=a)
        before(1) = 0
        after(n) = 0
        inverse(1) = 1/(1 + 2*a)
        do i = 2, n
            inverse(i) = 1/(1 + 2*a - a*a*inverse(i - 1))
        end do
    end subroutine

    ! The k-th eigenvector of A, and what one step leaves of mode (k, l).
    function mode(k)
        integer, intent(in) :: k
        real(real64) :: mode(n)
        integer :: i
        mode = [(sin(acos(-1._real64)*k*i/(n + 1)), i=1, n)]
    end function
    real(real64) function factor(k, l)
        integer, intent(in) :: k, l
        real(real64) :: x, y
        x = a*(2 - 2*cos(acos(-1._real64)*k/(n + 1)))
        y = a*(2 - 2*cos(acos(-1._real64)*l/(n + 1)))
        factor = (1 - x)*(1 - y)/((1 + x)*(1 + y))
    end function
    subroutine expect(steps)
        integer, intent(in) :: steps
        allocate (sums(n), worst(n), source=0._real64)
        first = mode(1)
        second = mode(2)
        third = mode(3)
        ones = factor(1, 1)**steps
        threes = 0.5*factor(3, 2)**steps
    end subroutine
end module

program heat
    use heat_options
    use heat_sweeps
    implicit none
    type(options) :: o
    integer :: k

    o = parsed()
    n = o%size
    call bind
    call nw_allocate(u, n, n)
    call nw_allocate(w, n, n)
    if (.not. (associated(u) .and. associated(w))) call give_up('out of memory; choose a smaller --size', '')
    rows = nw_cuts(1, n + 1, 1)
    columns = rows
    if (o%matched) call match
    call eliminate
    call expect(o%iterations)
    !$omp parallel if (o%parallel)
    call sweep_down(begin, .false.)
    !$omp end parallel
    !$omp parallel private(k)
    do k = 1, o%iterations
        call step
    end do
    call sweep_down(compare, .false.)
    !$omp end parallel
    call finish(maxval(worst) < 1e-9)

contains
    ! Where threads cannot be bound the program runs all the same.
    subroutine bind
        integer :: ignored
        ignored = nw_set_threads(omp_get_max_threads())
        !$omp parallel private(ignored)
        ignored = nw_bind_thread(omp_get_thread_num())
        !$omp end parallel
    end subroutine

    ! Both arrays block-exclusive, and the sweeps cut alike.
    subroutine match
        type(nw_distr) :: square
        integer :: ignored
        ignored = nw_place(w, nw_block_exclusive())
        ignored = nw_describe(square, u, nw_block_exclusive())
        ignored = nw_distribute(square)
        rows = nw_distr_cuts(square, 1)
        columns = nw_distr_cuts(square, 2)
        call nw_distr_free(square)
    end subroutine

    subroutine finish(right)
        logical, intent(in) :: right
        character(20) :: checksum
        write (checksum, '(es17.10e2)') sum(sums)
        k = index(checksum, 'E')
        checksum(k:k) = 'e'
        print '(a, i0, a, i0, 4a)', 'heat: size ', n, ', ', o%iterations, ' iterations, checksum ', &
            trim(adjustl(checksum)), ', ', trim(merge('verified', 'WRONG   ', right))
        call nw_free(u)
        call nw_free(w)
        call leave(merge(0, 1, right))
    end subroutine
end program

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

! The square of numbers, and both halves of a step. In every half, each point's operations are the same
! and in the same order, whoever does them: results are equal to the last bit.
module heat_steps
    use nodewise
    use omp_lib
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none

    real(real64), parameter :: a = 0.9 ! diffusivity times half a time step over the square of the distance

    ! (1 + a A) x = d, where A has 2 on its diagonal and -1 beside it, by elimination.
    type :: tridiagonal
        integer :: n
        real(real64), allocatable :: inverse(:) ! of the diagonal after elimination
        real(real64), allocatable :: before(:), after(:) ! a, but 0 where there is no neighbour
    end type

contains
    function eliminated(n) result(t)
        integer, intent(in) :: n
        type(tridiagonal) :: t
        integer :: i
        t%n = n
        allocate (t%inverse(n), t%before(n), t%after(n), source=a)
        t%before(1) = 0
        t%after(n) = 0
        t%inverse(1) = 1/(1 + 2*a)
        do i = 2, n
            t%inverse(i) = 1/(1 + 2*a - a*a*t%inverse(i - 1))
        end do
    end function

    ! Explicit along j, implicit along i: `from` to `to` of column j, downwards.
    subroutine eliminate_column(t, u, w, j, from, to)
        type(tridiagonal), intent(in) :: t
        real(real64), intent(in), contiguous :: u(:, :)
        real(real64), intent(inout), contiguous :: w(:, :)
        integer, intent(in) :: j, from, to
        integer :: i, left, right
        left = max(j - 1, 1)
        right = min(j + 1, t%n)
        do i = from, to
            w(i, j) = (1 - 2*a)*u(i, j) + t%before(j)*u(i, left) + t%after(j)*u(i, right)
            w(i, j) = (w(i, j) + t%before(i)*w(max(i - 1, 1), j))*t%inverse(i)
        end do
    end subroutine

    subroutine substitute_column(t, w, j, from, to)
        type(tridiagonal), intent(in) :: t
        real(real64), intent(inout), contiguous :: w(:, :)
        integer, intent(in) :: j, from, to
        integer :: i
        do i = to, from, -1
            w(i, j) = w(i, j) + t%after(i)*t%inverse(i)*w(min(i + 1, t%n), j)
        end do
    end subroutine

    ! Explicit along i, implicit along j: rows `from` to `to`, in column j.
    subroutine eliminate_rows(t, w, u, j, from, to)
        type(tridiagonal), intent(in) :: t
        real(real64), intent(in), contiguous :: w(:, :)
        real(real64), intent(inout), contiguous :: u(:, :)
        integer, intent(in) :: j, from, to
        integer :: i, left
        left = max(j - 1, 1)
        do i = from, to
            u(i, j) = (1 - 2*a)*w(i, j) + t%before(i)*w(max(i - 1, 1), j) + t%after(i)*w(min(i + 1, t%n), j)
            u(i, j) = (u(i, j) + t%before(j)*u(i, left))*t%inverse(j)
        end do
    end subroutine

    subroutine substitute_rows(t, u, j, from, to)
        type(tridiagonal), intent(in) :: t
        real(real64), intent(inout), contiguous :: u(:, :)
        integer, intent(in) :: j, from, to
        integer :: right
        right = min(j + 1, t%n)
        u(from:to, j) = u(from:to, j) + t%after(j)*t%inverse(j)*u(from:to, right)
    end subroutine

    ! Both halves by every thread of a team. In the default form rows and columns are one part
    ! each, and a half is one sweep over what schedule(static) gives.
    subroutine step(t, u, w, rows, columns)
        type(tridiagonal), intent(in) :: t
        real(real64), intent(inout), contiguous :: u(:, :), w(:, :)
        type(nw_cuts), intent(in) :: rows, columns
        integer :: id, j, from, to, first, last
        type(nw_exclusive) :: mine
        do id = 0, rows%parts - 1
            call nw_part(rows, id, 1, t%n, from, to)
            mine = share(t%n, columns, id)
            do while (nw_next(mine, first, last))
                do j = first, last
                    call eliminate_column(t, u, w, j, from, to)
                end do
            end do
            !$omp barrier
        end do
        do id = rows%parts - 1, 0, -1
            call nw_part(rows, id, 1, t%n, from, to)
            mine = share(t%n, columns, id)
            do while (nw_next(mine, first, last))
                do j = first, last
                    call substitute_column(t, w, j, from, to)
                end do
            end do
            !$omp barrier
        end do
        do id = 0, columns%parts - 1
            call nw_part(columns, id, 1, t%n, first, last)
            mine = share(t%n, rows, id)
            do while (nw_next(mine, from, to))
                do j = first, last
                    call eliminate_rows(t, w, u, j, from, to)
                end do
            end do
            !$omp barrier
        end do
        do id = columns%parts - 1, 0, -1
            call nw_part(columns, id, 1, t%n, first, last)
            mine = share(t%n, rows, id)
            do while (nw_next(mine, from, to))
                do j = last, first, -1
                    call substitute_rows(t, u, j, from, to)
                end do
            end do
            !$omp barrier
        end do
    end subroutine

    ! The calling thread's in part `id`; all of one part in order of threads is schedule(static).
    function share(n, cuts, id) result(mine)
        integer, intent(in) :: n, id
        type(nw_cuts), intent(in) :: cuts
        type(nw_exclusive) :: mine
        mine = nw_exclusive_begin(1, n, cuts, id, omp_get_thread_num(), omp_get_num_threads())
    end function
end module

program heat
    use heat_options
    use heat_steps
    implicit none
    type(options) :: o
    type(tridiagonal) :: t
    type(nw_cuts) :: rows, columns
    real(real64), pointer, contiguous :: u(:, :), w(:, :)
    integer :: k

    o = parsed()
    call bind
    call nw_allocate(u, o%size, o%size)
    call nw_allocate(w, o%size, o%size)
    if (.not. (associated(u) .and. associated(w))) call give_up('out of memory; choose a smaller --size', '')
    rows = nw_cuts(1, o%size + 1, 1)
    columns = rows
    if (o%matched) call match
    t = eliminated(o%size)
    call start
    !$omp parallel private(k)
    do k = 1, o%iterations
        call step(t, u, w, rows, columns)
    end do
    !$omp end parallel
    call finish

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

    ! Mode k of n: the k-th eigenvector along one direction, and its eigenvalue.
    pure real(real64) function mode(k, i)
        integer, intent(in) :: k, i
        mode = sin(acos(-1._real64)*k*i/(o%size + 1))
    end function
    pure real(real64) function eigenvalue(k)
        integer, intent(in) :: k
        eigenvalue = 2 - 2*cos(acos(-1._real64)*k/(o%size + 1))
    end function
    ! What one step leaves of a mode.
    pure real(real64) function factor(k, l)
        integer, intent(in) :: k, l
        factor = (1 - a*eigenvalue(k))*(1 - a*eigenvalue(l))/((1 + a*eigenvalue(k))*(1 + a*eigenvalue(l)))
    end function

    subroutine start
        real(real64) :: first(o%size), third(o%size), second(o%size)
        integer :: i, j
        first = [(mode(1, i), i=1, o%size)]
        second = [(mode(2, i), i=1, o%size)]
        third = [(mode(3, i), i=1, o%size)]
        !$omp parallel do schedule(static) if (o%parallel)
        do j = 1, o%size
            u(:, j) = first*first(j) + 0.5*third*second(j)
            w(:, j) = 0
        end do
        !$omp end parallel do
    end subroutine

    subroutine finish
        real(real64) :: sums(o%size), worst(o%size), ones, threes
        real(real64) :: first(o%size), second(o%size), third(o%size)
        character(20) :: checksum
        logical :: right
        integer :: i, j
        first = [(mode(1, i), i=1, o%size)]
        second = [(mode(2, i), i=1, o%size)]
        third = [(mode(3, i), i=1, o%size)]
        ones = factor(1, 1)**o%iterations
        threes = 0.5*factor(3, 2)**o%iterations
        !$omp parallel do schedule(static)
        do j = 1, o%size
            sums(j) = sum(u(:, j))
            worst(j) = maxval(abs(u(:, j) - ones*first*first(j) - threes*third*second(j)))
        end do
        !$omp end parallel do
        right = maxval(worst) < 1e-9
        write (checksum, '(es17.10e2)') sum(sums)
        i = index(checksum, 'E')
        checksum(i:i) = 'e'
        print '(a, i0, a, i0, 4a)', 'heat: size ', o%size, ', ', o%iterations, ' iterations, checksum ', &
            trim(adjustl(checksum)), ', ', trim(merge('verified', 'WRONG   ', right))
        call nw_free(u)
        call nw_free(w)
        call leave(merge(0, 1, right))
    end subroutine
end program

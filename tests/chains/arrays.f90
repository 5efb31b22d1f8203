! Places from which a Fortran program may allocate: internal procedures, array temporaries, recursion.
program arrays
  implicit none
  interface
    subroutine look() bind(c)
    end subroutine
  end interface
  real, allocatable :: a(:, :)
  integer :: i
  allocate (a(50, 50))
  call random_number(a)
  do i = 1, 3
    call down(a(::2, ::3) + real(i), i)
  end do
  call inside(a)
contains
  recursive subroutine down(values, depth)
    real, intent(in) :: values(:, :)
    integer, intent(in) :: depth
    real :: copy(size(values, 1), size(values, 2))
    copy = values
    call look()
    if (depth > 0) call down(transpose(copy), depth - 1)
    if (copy(1, 1) < -1) print *, copy
  end subroutine
  subroutine inside(values)
    real, intent(in) :: values(:, :)
    if (sum(values) > 0) call look()
  end subroutine
end program

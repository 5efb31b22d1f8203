! As loops.c: a dynamic loop of Fortran.
program loops
  use omp_lib
  implicit none
  integer, parameter :: n = 4000
  integer :: i, j, who(n), runs
  real(8) :: x(n)
  !$omp parallel do schedule(dynamic) private(j)
  do i = 1, n
    who(i) = omp_get_thread_num()
    x(i) = i
    do j = 1, 200 + mod(i, 7) * 300
      x(i) = x(i) * 0.5d0 + 1
    end do
  end do
  runs = 1
  do i = 2, n
    if (who(i) /= who(i - 1)) runs = runs + 1
  end do
  print '(a, 1x, i0, 1x, i0)', 'fortran', runs, nint(sum(x))
end program

! As program.c, in Fortran.
program uses_nodewise
    use nodewise
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none
    real(real64), pointer :: array(:, :)
    integer :: status

    call nw_allocate(array, 512, 64)
    if (.not. associated(array)) stop 1
    status = nw_place(array, nw_cyclic(nw_pages, 1))
    if (status < 0) stop 2
    if (nint(sum(array + 1)) /= 64 * 512) stop 3
    call nw_free(array)
    print '(a)', nw_version()
end program

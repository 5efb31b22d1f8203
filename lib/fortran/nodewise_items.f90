! What arrays of all types and ranks share: allocating and freeing memory, and finding the nearest copy. Programs use
! the module `nodewise`.
!
! The index that varies fastest in memory is Fortran's first and C's last one, so extents are passed in reverse order,
! here and in nodewise_adopt.f90.in.
module nodewise_items
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int64
    use nodewise_c
    implicit none
    private
    public :: allocated_items, released, nearest_items

contains
    function allocated_items(bytes, extents) result(data)
        integer(c_size_t), intent(in) :: bytes
        integer(int64), intent(in) :: extents(:)
        type(c_ptr) :: data
        integer(c_size_t) :: reversed(size(extents))
        reversed = max(extents(size(extents):1:-1), 0_int64)
        data = c_alloc(bytes, size(extents, kind=c_int), reversed)
    end function

    logical function released(data, status)
        type(c_ptr), intent(in) :: data
        integer, intent(out), optional :: status
        integer :: freed
        freed = c_free(data)
        if (present(status)) status = freed
        released = freed == 0
    end function

    ! The copy nearest to the caller, for a pointer of that rank and item size; null, with a message, if these differ
    ! from the array's.
    function nearest_items(a, rank_of_a, rank_of_copy, bytes) result(data)
        type(c_ptr), intent(in) :: a
        integer, intent(in) :: rank_of_a, rank_of_copy
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr) :: data
        type(c_shape) :: known
        character(len=100) :: line
        data = c_null_ptr
        if (c_shape_of(a, known) /= 0) return
        if (rank_of_a /= rank_of_copy) then
            write (line, '(2(a, i0))') 'nw_nearest: a pointer of rank ', rank_of_copy, ' to an array of rank ', rank_of_a
        else if (known%item /= bytes) then
            write (line, '(2(a, i0))') 'nw_nearest: a pointer to items of ', bytes, ' bytes: the array''s have ', known%item
        else
            data = c_nearest(a)
            return
        end if
        call c_fail(c_invalid, line)
    end function
end module

! Arrays of the library as Fortran pointers: allocated, freed, adopted, and their nearest copies, for each
! type and rank. Programs use the module `nodewise`.
!
! Fortran's first dimension lies closest in memory, C's last one: extents are handed over reversed, here
! and nowhere else.
module nodewise_arrays
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use nodewise_c
    implicit none
    private
    public :: nw_allocate, nw_free, nw_adopt, nw_nearest

    ! call nw_allocate(a, nx, ny): zeroed; not associated where that cannot be (see nw_last_error).
    interface nw_allocate
        module procedure allocate_real64_1, allocate_real64_2, allocate_real64_3, &
            allocate_real64_4, allocate_real32_1, allocate_real32_2, allocate_real32_3, &
            allocate_real32_4, allocate_int32_1, allocate_int32_2, allocate_int32_3, &
            allocate_int32_4, allocate_complex_1, allocate_complex_2, allocate_complex_3, &
            allocate_complex_4, allocate_real64_long, allocate_real32_long, allocate_int32_long, &
            allocate_complex_long
    end interface

    ! call nw_free(a): not associated afterwards, unless it is no array of nw_allocate: then it stays as it was.
    interface nw_free
        module procedure free_real64_1, free_real64_2, free_real64_3, free_real64_4, free_real32_1, &
            free_real32_2, free_real32_3, free_real32_4, free_int32_1, free_int32_2, free_int32_3, &
            free_int32_4, free_complex_1, free_complex_2, free_complex_3, free_complex_4
    end interface

    ! status = nw_adopt(a): any contiguous array with the target attribute, until nw_forget(a).
    interface nw_adopt
        module procedure adopt_real64, adopt_real32, adopt_int32, adopt_complex
    end interface

    ! call nw_nearest(a, copy): the copy that nw_replicate made closest to the caller, to be read only;
    ! not associated where `copy` is not of the array's rank and type.
    interface nw_nearest
        module procedure nearest_real64_1, nearest_real64_2, nearest_real64_3, nearest_real64_4, &
            nearest_real32_1, nearest_real32_2, nearest_real32_3, nearest_real32_4, &
            nearest_int32_1, nearest_int32_2, nearest_int32_3, nearest_int32_4, nearest_complex_1, &
            nearest_complex_2, nearest_complex_3, nearest_complex_4
    end interface

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

    ! The copy nearest to the caller, for a pointer of that rank and item; null with a message if it is unlike
    ! the array.
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

    ! ---- real(real64)

    subroutine allocate_real64_1(a, n)
        real(real64), pointer, intent(out) :: a(:)
        integer, intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real64), int([n], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    subroutine free_real64_1(a, status)
        real(real64), pointer, intent(inout) :: a(:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real64_1(a, copy)
        type(*), intent(in), target :: a(..)
        real(real64), pointer, intent(out) :: copy(:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real64))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real64_2(a, nx, ny)
        real(real64), pointer, intent(out) :: a(:,:)
        integer, intent(in) :: nx, ny
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real64), int([nx, ny], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny])
    end subroutine

    subroutine free_real64_2(a, status)
        real(real64), pointer, intent(inout) :: a(:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real64_2(a, copy)
        type(*), intent(in), target :: a(..)
        real(real64), pointer, intent(out) :: copy(:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real64))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real64_3(a, nx, ny, nz)
        real(real64), pointer, intent(out) :: a(:,:,:)
        integer, intent(in) :: nx, ny, nz
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real64), int([nx, ny, nz], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz])
    end subroutine

    subroutine free_real64_3(a, status)
        real(real64), pointer, intent(inout) :: a(:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real64_3(a, copy)
        type(*), intent(in), target :: a(..)
        real(real64), pointer, intent(out) :: copy(:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real64))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real64_4(a, nx, ny, nz, nw)
        real(real64), pointer, intent(out) :: a(:,:,:,:)
        integer, intent(in) :: nx, ny, nz, nw
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real64), int([nx, ny, nz, nw], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz, nw])
    end subroutine

    subroutine free_real64_4(a, status)
        real(real64), pointer, intent(inout) :: a(:,:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real64_4(a, copy)
        type(*), intent(in), target :: a(..)
        real(real64), pointer, intent(out) :: copy(:,:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real64))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real64_long(a, n)
        real(real64), pointer, intent(out) :: a(:)
        integer(int64), intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real64), [n])
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    function adopt_real64(a) result(status)
        real(real64), intent(inout), target :: a(..)
        integer :: status
        integer(c_size_t) :: extents(rank(a))
        extents = shape(a, kind=c_size_t)
        if (.not. is_contiguous(a)) extents = 0 ! refused
        status = c_adopt(c_loc(a), c_sizeof(0._real64), rank(a), extents(rank(a):1:-1))
    end function

    ! ---- real(real32)

    subroutine allocate_real32_1(a, n)
        real(real32), pointer, intent(out) :: a(:)
        integer, intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real32), int([n], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    subroutine free_real32_1(a, status)
        real(real32), pointer, intent(inout) :: a(:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real32_1(a, copy)
        type(*), intent(in), target :: a(..)
        real(real32), pointer, intent(out) :: copy(:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real32_2(a, nx, ny)
        real(real32), pointer, intent(out) :: a(:,:)
        integer, intent(in) :: nx, ny
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real32), int([nx, ny], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny])
    end subroutine

    subroutine free_real32_2(a, status)
        real(real32), pointer, intent(inout) :: a(:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real32_2(a, copy)
        type(*), intent(in), target :: a(..)
        real(real32), pointer, intent(out) :: copy(:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real32_3(a, nx, ny, nz)
        real(real32), pointer, intent(out) :: a(:,:,:)
        integer, intent(in) :: nx, ny, nz
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real32), int([nx, ny, nz], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz])
    end subroutine

    subroutine free_real32_3(a, status)
        real(real32), pointer, intent(inout) :: a(:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real32_3(a, copy)
        type(*), intent(in), target :: a(..)
        real(real32), pointer, intent(out) :: copy(:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real32_4(a, nx, ny, nz, nw)
        real(real32), pointer, intent(out) :: a(:,:,:,:)
        integer, intent(in) :: nx, ny, nz, nw
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real32), int([nx, ny, nz, nw], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz, nw])
    end subroutine

    subroutine free_real32_4(a, status)
        real(real32), pointer, intent(inout) :: a(:,:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_real32_4(a, copy)
        type(*), intent(in), target :: a(..)
        real(real32), pointer, intent(out) :: copy(:,:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0._real32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_real32_long(a, n)
        real(real32), pointer, intent(out) :: a(:)
        integer(int64), intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0._real32), [n])
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    function adopt_real32(a) result(status)
        real(real32), intent(inout), target :: a(..)
        integer :: status
        integer(c_size_t) :: extents(rank(a))
        extents = shape(a, kind=c_size_t)
        if (.not. is_contiguous(a)) extents = 0 ! refused
        status = c_adopt(c_loc(a), c_sizeof(0._real32), rank(a), extents(rank(a):1:-1))
    end function

    ! ---- integer(int32)

    subroutine allocate_int32_1(a, n)
        integer(int32), pointer, intent(out) :: a(:)
        integer, intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0_int32), int([n], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    subroutine free_int32_1(a, status)
        integer(int32), pointer, intent(inout) :: a(:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_int32_1(a, copy)
        type(*), intent(in), target :: a(..)
        integer(int32), pointer, intent(out) :: copy(:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0_int32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_int32_2(a, nx, ny)
        integer(int32), pointer, intent(out) :: a(:,:)
        integer, intent(in) :: nx, ny
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0_int32), int([nx, ny], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny])
    end subroutine

    subroutine free_int32_2(a, status)
        integer(int32), pointer, intent(inout) :: a(:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_int32_2(a, copy)
        type(*), intent(in), target :: a(..)
        integer(int32), pointer, intent(out) :: copy(:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0_int32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_int32_3(a, nx, ny, nz)
        integer(int32), pointer, intent(out) :: a(:,:,:)
        integer, intent(in) :: nx, ny, nz
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0_int32), int([nx, ny, nz], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz])
    end subroutine

    subroutine free_int32_3(a, status)
        integer(int32), pointer, intent(inout) :: a(:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_int32_3(a, copy)
        type(*), intent(in), target :: a(..)
        integer(int32), pointer, intent(out) :: copy(:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0_int32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_int32_4(a, nx, ny, nz, nw)
        integer(int32), pointer, intent(out) :: a(:,:,:,:)
        integer, intent(in) :: nx, ny, nz, nw
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0_int32), int([nx, ny, nz, nw], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz, nw])
    end subroutine

    subroutine free_int32_4(a, status)
        integer(int32), pointer, intent(inout) :: a(:,:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_int32_4(a, copy)
        type(*), intent(in), target :: a(..)
        integer(int32), pointer, intent(out) :: copy(:,:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof(0_int32))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_int32_long(a, n)
        integer(int32), pointer, intent(out) :: a(:)
        integer(int64), intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof(0_int32), [n])
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    function adopt_int32(a) result(status)
        integer(int32), intent(inout), target :: a(..)
        integer :: status
        integer(c_size_t) :: extents(rank(a))
        extents = shape(a, kind=c_size_t)
        if (.not. is_contiguous(a)) extents = 0 ! refused
        status = c_adopt(c_loc(a), c_sizeof(0_int32), rank(a), extents(rank(a):1:-1))
    end function

    ! ---- complex(real64)

    subroutine allocate_complex_1(a, n)
        complex(real64), pointer, intent(out) :: a(:)
        integer, intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof((0._real64, 0._real64)), int([n], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    subroutine free_complex_1(a, status)
        complex(real64), pointer, intent(inout) :: a(:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_complex_1(a, copy)
        type(*), intent(in), target :: a(..)
        complex(real64), pointer, intent(out) :: copy(:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof((0._real64, 0._real64)))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_complex_2(a, nx, ny)
        complex(real64), pointer, intent(out) :: a(:,:)
        integer, intent(in) :: nx, ny
        type(c_ptr) :: data
        data = allocated_items(c_sizeof((0._real64, 0._real64)), int([nx, ny], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny])
    end subroutine

    subroutine free_complex_2(a, status)
        complex(real64), pointer, intent(inout) :: a(:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_complex_2(a, copy)
        type(*), intent(in), target :: a(..)
        complex(real64), pointer, intent(out) :: copy(:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof((0._real64, 0._real64)))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_complex_3(a, nx, ny, nz)
        complex(real64), pointer, intent(out) :: a(:,:,:)
        integer, intent(in) :: nx, ny, nz
        type(c_ptr) :: data
        data = allocated_items(c_sizeof((0._real64, 0._real64)), int([nx, ny, nz], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz])
    end subroutine

    subroutine free_complex_3(a, status)
        complex(real64), pointer, intent(inout) :: a(:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_complex_3(a, copy)
        type(*), intent(in), target :: a(..)
        complex(real64), pointer, intent(out) :: copy(:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof((0._real64, 0._real64)))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_complex_4(a, nx, ny, nz, nw)
        complex(real64), pointer, intent(out) :: a(:,:,:,:)
        integer, intent(in) :: nx, ny, nz, nw
        type(c_ptr) :: data
        data = allocated_items(c_sizeof((0._real64, 0._real64)), int([nx, ny, nz, nw], int64))
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [nx, ny, nz, nw])
    end subroutine

    subroutine free_complex_4(a, status)
        complex(real64), pointer, intent(inout) :: a(:,:,:,:)
        integer, intent(out), optional :: status
        type(c_ptr) :: data
        data = c_null_ptr
        if (associated(a)) data = c_loc(a)
        if (released(data, status)) nullify (a)
    end subroutine

    subroutine nearest_complex_4(a, copy)
        type(*), intent(in), target :: a(..)
        complex(real64), pointer, intent(out) :: copy(:,:,:,:)
        type(c_ptr) :: data
        data = nearest_items(c_loc(a), rank(a), rank(copy), c_sizeof((0._real64, 0._real64)))
        nullify (copy)
        if (c_associated(data)) call c_f_pointer(data, copy, shape(a, kind=int64))
    end subroutine

    subroutine allocate_complex_long(a, n)
        complex(real64), pointer, intent(out) :: a(:)
        integer(int64), intent(in) :: n
        type(c_ptr) :: data
        data = allocated_items(c_sizeof((0._real64, 0._real64)), [n])
        nullify (a)
        if (c_associated(data)) call c_f_pointer(data, a, [n])
    end subroutine

    function adopt_complex(a) result(status)
        complex(real64), intent(inout), target :: a(..)
        integer :: status
        integer(c_size_t) :: extents(rank(a))
        extents = shape(a, kind=c_size_t)
        if (.not. is_contiguous(a)) extents = 0 ! refused
        status = c_adopt(c_loc(a), c_sizeof((0._real64, 0._real64)), rank(a), extents(rank(a):1:-1))
    end function
end module

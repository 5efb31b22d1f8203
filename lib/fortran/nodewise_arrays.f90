! Arrays of the library as Fortran pointers: generic names over the modules of each type and rank, which are made
! from nodewise_array.f90.in and nodewise_adopt.f90.in. Programs use the module `nodewise`.
!
!     call nw_allocate(a, nx, ny)   zeroed; extents are default or 64-bit integers; not associated if that fails
!                                   (see nw_last_error)
!     call nw_free(a)               not associated afterwards; unchanged if it is no array of nw_allocate
!     status = nw_adopt(a)          any contiguous array with the target attribute, until nw_forget(a)
!     call nw_nearest(a, copy)      of the copies that nw_replicate made, the one nearest to the caller, to be read
!                                   only; not associated if `copy` has another rank or type than the array
module nodewise_arrays
    use nodewise_real64
    use nodewise_real64_1
    use nodewise_real64_2
    use nodewise_real64_3
    use nodewise_real64_4
    use nodewise_real32
    use nodewise_real32_1
    use nodewise_real32_2
    use nodewise_real32_3
    use nodewise_real32_4
    use nodewise_int32
    use nodewise_int32_1
    use nodewise_int32_2
    use nodewise_int32_3
    use nodewise_int32_4
    use nodewise_complex
    use nodewise_complex_1
    use nodewise_complex_2
    use nodewise_complex_3
    use nodewise_complex_4
    implicit none
    private
    public :: nw_allocate, nw_free, nw_adopt, nw_nearest
end module

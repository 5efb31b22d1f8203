subroutine multiply(a, b, c, n)
  integer, intent(in) :: n
  real(8), intent(in) :: a(n, n), b(n, n)
  real(8), intent(out) :: c(n, n)
  c = matmul(a, b) + transpose(a)
end subroutine

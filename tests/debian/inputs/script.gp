default(parisize, 20000000);
print(factor(2^101 - 1));
print(sum(k = 1, 20000, eulerphi(k)));
print(matdet(matrix(40, 40, i, j, (i * j + i) % 11)));
print(zeta(3));
quit(4);

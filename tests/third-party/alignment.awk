# A made-up DNA alignment: a family tree with mutations. `n` sequences of `length_` letters.
function letter() { return substr("ACGT", 1 + int(rand() * 4), 1) }
function mutant(text,    i, out) {
    for (i = 1; i <= length_; i++)
        out = out (rand() < 0.05 ? letter() : substr(text, i, 1))
    return out
}
BEGIN {
    srand(1)
    for (i = 1; i <= length_; i++)
        sequence[1] = sequence[1] letter()
    for (i = 2; i <= n; i++)
        sequence[i] = mutant(sequence[int(i / 2)])
    for (i = 1; i <= n; i++)
        printf ">s%d\n%s\n", i, sequence[i]
}

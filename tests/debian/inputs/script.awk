{ for (i = 1; i <= NF; i++) count[$i]++; characters += length }
END {
    n = asorti(count, words)
    for (i = 1; i <= 5; i++) print words[i], count[words[i]]
    print characters, n | "cat"
    close("cat")
    exit 3
}

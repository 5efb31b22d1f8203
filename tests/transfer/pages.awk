# The preload's trace as lines `page node`: heap objects only, since statics move with the program, in
# pages from the beginning of the heap's own range, since awk counts exactly to 2^31 only.
function hex(text,  i, value) {
    value = 0
    for (i = 1; i <= length(text); i++)
        value = 16 * value + index("0123456789abcdef", substr(text, i, 1)) - 1
    return value
}
BEGIN { begin = 8589934592; end = begin + 1073741824 }
$1 ~ /^(prefer|populate|interleave)$/ {
    first = hex($2) - begin
    if (first < 0 || first >= end - begin)
        next
    count = split($4, list, ",")
    for (page = first; page < first + hex($3); page++)
        node[page] = list[(page + begin) % count + 1]
}
END { for (page in node) print page, node[page] }

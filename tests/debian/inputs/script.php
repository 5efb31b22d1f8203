<?php
$text = file_get_contents("in/text");
$count = array_count_values(str_word_count($text, 1));
ksort($count);
foreach (array_slice($count, 0, 5) as $word => $n) echo "$word $n\n";
$many = range(1, 200000);
shuffle($many);
sort($many);
echo $many[777], " ", hash("sha256", $text), "\n";
file_put_contents("out.txt", strrev(substr($text, 0, 1000)));
exit(4);

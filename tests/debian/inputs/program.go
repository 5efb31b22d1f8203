package main

import (
	"fmt"
	"os"
	"sync"
)

func main() {
	text, _ := os.ReadFile("in/text")
	sums := make([]int, 8)
	var wait sync.WaitGroup
	for t := range sums {
		wait.Add(1)
		go func(t int) {
			defer wait.Done()
			part := make([]int, 100000)
			for i := range part {
				part[i] = int(text[i%len(text)]) * t
				sums[t] += part[i]
			}
		}(t)
	}
	wait.Wait()
	fmt.Println(sums)
	os.Exit(4)
}

//go:build !linux

package main

import "fmt"

func main() { fmt.Println("servicecost reads /proc: Linux only") }

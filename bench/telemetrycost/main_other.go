//go:build !linux

package main

import "fmt"

func main() { fmt.Println("telemetrycost reads /proc: Linux only") }

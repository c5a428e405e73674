//go:build !race

package soft_test

const racing = false

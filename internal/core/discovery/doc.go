// Package discovery makes a map of a fabric from what its switches report.
package discovery

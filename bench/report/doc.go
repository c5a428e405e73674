// Package report reports measurements as CSV, JSON, text and Markdown tables. The
// tables are those of docs/benchmarks.md.
package report

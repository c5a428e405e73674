// Package document reads YAML and JSON into values that know their lines, so
// that whoever reads them can say where something is wrong.
package document

// Package document reads YAML and JSON into values that know their lines, for error
// messages.
package document

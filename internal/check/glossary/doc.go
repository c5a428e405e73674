// Package glossary keeps the project to the words of docs/glossary.md. The Not
// columns of its tables are the one list of words that must not be used; its
// tests check every source file and document against them.
//
// A word counts however it is written: telltale, Telltale and tell_tale are found
// by "tell tale", and so is an identifier that has the two as camel-case parts.
// What may still have old words stands in exceptions.go, each with its reason.
package glossary

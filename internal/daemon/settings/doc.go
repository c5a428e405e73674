// Package settings reads the configuration files of the manager and of switch agents.
// They are YAML, or JSON. The JSON schemas are in manager.schema.json and
// agent.schema.json, examples in docs/examples.
//
// Everything that is wrong in a file is reported at once, in the manner of package
// topology: *topology.FileError, each with file, line and field, joined, of
// which every one wraps one of that package's sentinel errors. Paths in a file
// are relative to its directory.
package settings

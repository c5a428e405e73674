// Package secretfile reads files that hold secrets, and refuses those that others may read.
package secretfile

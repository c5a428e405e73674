// Package view writes what a manager says of its fabric and groups: as text for
// people, as JSON for programs, as SVG.
package view

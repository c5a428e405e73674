// Package view writes a manager's fabric and groups as text, JSON and SVG.
package view

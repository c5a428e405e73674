// Package rails finds a host's rails from the interfaces of its machine, and follows
// whether they carry anything: a rail whose interface loses its carrier or its address is
// reported at once.
package rails

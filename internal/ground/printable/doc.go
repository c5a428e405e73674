// Package printable makes text from anywhere fit for a terminal: what a terminal
// would act upon is spelled instead.
package printable

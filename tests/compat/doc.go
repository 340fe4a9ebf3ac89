// Package compat has nothing but tests: GORM with the plugin installed does what it does without it, and what the plugin
// adds works, in each way to run GORM and beside its other plugins. It is a module of its own, so that what those bring
// along stays out of gormlock's.
package compat

//go:generate go run ./internal/generate

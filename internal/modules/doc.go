// Package modules keeps the modules of this repository in step: where they replace each other, which version of each other
// and of what they share they require, and which Go they are written for.
//
// The module at the root is the measure. What users do not need lies in modules of its own below it, which replace each
// other by their directories.
package modules

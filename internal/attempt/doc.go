// Package attempt runs a function in a transaction of its own, and once more where the conflict that it met is cured by
// it.
package attempt

// Package attempt runs a function in a transaction of its own, and runs it again after a conflict that another run can
// cure.
package attempt

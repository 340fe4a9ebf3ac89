// Package once runs a function at most once for a key, in the transaction of its effect.
package once

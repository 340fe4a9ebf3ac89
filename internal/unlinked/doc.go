// Package unlinked knows which structs have lost an association by an Association(…).Delete that was rolled back.
//
// After its statement, Association(…).Delete empties the foreign key of the owner and, in place, the struct that the owner points to. No statement
// has the owner itself, only its key. So no rollback can restore it, and its next save would store NULL, or an empty row. That save is refused. If
// the owner holds the associated struct by value, it looks as if it never had one, so its save is not refused.
package unlinked

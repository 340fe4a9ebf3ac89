// Package unlinked knows which structs have lost what they belong to by an Association(…).Delete that was rolled back.
//
// After its statement, Association(…).Delete empties the foreign key of the owner and, in place, the struct that the owner points to. No statement
// shows the owner, only its key. So no rollback can restore it, and its next save would store NULL, or an empty row. That is refused. What holds the
// associated struct by value looks like one that never had any, so it is let pass.
package unlinked

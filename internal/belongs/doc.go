// Package belongs makes versioned structs store the foreign keys that the program has set. Whenever a struct holds an association,
// GORM sets the foreign key to the association's key, although most associations are only there because they were read.
package belongs

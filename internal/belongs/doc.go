// Package belongs keeps the foreign keys of versioned structs true to what was asked for. GORM sets a foreign key to the key
// of the struct in the association, whenever there is one, although most associations are only there because they were read.
package belongs

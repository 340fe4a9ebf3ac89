// Package shared separates pointers that structs share. GORM writes a column through the struct's pointer for it. If another struct, or a variable
// of the program, has the same pointer, as with OrderID: &order.ID, it would change too.
package shared

// Package shared takes apart what structs share by pointers. GORM writes a column through the pointer that a struct has for it. If
// another struct, or a variable of the program, has the same pointer, as with OrderID: &order.ID, it would change too.
package shared

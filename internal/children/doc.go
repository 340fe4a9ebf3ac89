// Package children prevents faults of GORM when it saves a struct with children. GORM would leave out one of two children with the same key,
// store one twice, or leave the parent's key in a child although the statement failed. If the package cannot mend a fault, it refuses the save
// before anything is stored.
package children

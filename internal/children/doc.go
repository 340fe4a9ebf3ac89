// Package children knows what GORM would do to the children in the associations of a struct that is saved: leave one of two with the same key
// out, store one twice, give one its parent's key for good though the statement fails. What cannot be mended is refused before anything is stored.
package children

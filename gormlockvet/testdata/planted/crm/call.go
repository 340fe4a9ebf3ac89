//go:build unvetted

package crm

import "gorm.io/gorm"

// Call has a tag that cannot be read, as go vet says too.
type Call struct {
	gorm.Model
	Number string `gormlock: "unversioned"` // misuse: tags
}

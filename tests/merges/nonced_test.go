package merges_test

import (
	"crypto/rand"
	"database/sql/driver"
	"fmt"
	"strings"
)

// nonced is a text that is stored with something random before it.
type nonced struct{ Text string }

func (n nonced) Value() (driver.Value, error) { return rand.Text() + " " + n.Text, nil }

func (n *nonced) Scan(stored any) error {
	_, n.Text, _ = strings.Cut(fmt.Sprint(stored), " ")
	return nil
}

func (nonced) GormDataType() string { return "text" }

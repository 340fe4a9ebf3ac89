package rowlock

import (
	"fmt"

	"github.com/gormlock/gormlock/internal/fault"
)

// Strength is how strongly rows are locked.
type Strength uint8

// The strengths, strongest first.
const (
	forUpdate Strength = iota + 1
	ForNoKeyUpdate
	ForShare
	forKeyShare
)

// String is the SQL: FOR UPDATE.
func (s Strength) String() string {
	if s < forUpdate || s > forKeyShare {
		return fmt.Sprintf("Strength(%d)", uint8(s))
	}
	return "FOR " + s.SQL()
}

// SQL is the text after FOR.
func (s Strength) SQL() string {
	return [...]string{"", "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"}[s]
}

// SetStrength sets the lock's strength. Setting another one later is an error.
func (l *Lock) SetStrength(s Strength) error {
	if s < forUpdate || s > forKeyShare {
		return fmt.Errorf("%w: %v is not a strength of a row lock", fault.ErrOption, s)
	}
	if l.Strength != 0 && l.Strength != s {
		return fmt.Errorf("%w: a row lock has one strength: use %v or %v", fault.ErrOption, l.Strength, s)
	}
	l.Strength = s
	return nil
}

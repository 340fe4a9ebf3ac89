package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// oddly is a model whose columns have names that must be quoted with care. Its twin has no version.
type oddly struct {
	Key     string `gorm:"column:the key;primaryKey"`
	Quoted  int    `gorm:"column:say \"it\""`
	Dotted  string `gorm:"column:a.b"`
	Upper   bool   `gorm:"column:UPPER"`
	Version int64  `gorm:"column:V \"1\"" gormlock:"version"`
}

type oddlyPlain struct {
	Key     string `gorm:"column:the key;primaryKey"`
	Quoted  int    `gorm:"column:say \"it\""`
	Dotted  string `gorm:"column:a.b"`
	Upper   bool   `gorm:"column:UPPER"`
	Version int64  `gorm:"column:V \"1\""`
}

// What a versioned update has in common with a plain one is written as GORM writes it, whatever the columns are called.
func TestUpdate_textIsGORMs(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New())).Session(&gorm.Session{DryRun: true})
	parts := func(tx *gorm.DB) (set, where string, vars []any) {
		if tx.Error != nil {
			t.Fatal(tx.Error)
		}
		text := tx.Statement.SQL.String()
		_, text, _ = strings.Cut(text, " SET ")
		set, where, _ = strings.Cut(text, " WHERE ")
		return set, where, tx.Statement.Vars
	}
	for name, columns := range map[string]any{
		"by column": map[string]any{`say "it"`: 1, "a.b": "x", "UPPER": true},
		"by field":  map[string]any{"Quoted": 1, "Dotted": "x", "Upper": true},
		"computed":  map[string]any{"Quoted": gorm.Expr("? + 1", 1), "Dotted": nil, "Upper": []byte("t")},
	} {
		set, where, vars := parts(db.Model(&oddly{Key: "k", Version: 7}).Table("oddly").Updates(columns))
		plainSet, plainWhere, plainVars := parts(db.Model(&oddlyPlain{Key: "k", Version: 7}).Table("oddly").Updates(columns))
		if !strings.HasPrefix(set, plainSet+",") || !strings.HasPrefix(where, plainWhere+" AND ") || len(vars) != len(plainVars)+1 {
			t.Errorf("%s: SET %s WHERE %s with %v, GORM writes SET %s WHERE %s with %v", name, set, where, vars, plainSet, plainWhere, plainVars)
		}
	}
}

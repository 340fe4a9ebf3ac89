package etag

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// ErrNoVersion is the error of [Of] for a value without a version: a model without one, nil, or a struct that was not
// read from its row. In the last case it is also gormlock.ErrVersionMissing.
var ErrNoVersion = errors.New("gormlock: there is no version to make a tag of")

// Of returns the strong entity tag of a row, a struct with a version column or a pointer to one, or of the rows of a
// slice in their order. An empty slice has a tag too. A struct that was not read from its row is [ErrNoVersion].
func Of(value any) (string, error) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return "", fmt.Errorf("%w: %T is nil", ErrNoVersion, value)
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		return ofRows(v)
	}
	m, err := modelOf(v.Type())
	if err != nil {
		return "", err
	}
	return m.tag(v)
}

func ofRows(rows reflect.Value) (string, error) {
	of := rows.Type().Elem()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	m, err := modelOf(of)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := range rows.Len() {
		row := rows.Index(i)
		for row.Kind() == reflect.Pointer {
			row = row.Elem()
		}
		if !row.IsValid() {
			return "", fmt.Errorf("%w: element %d is nil", ErrNoVersion, i)
		}
		tag, err := m.tag(row)
		if err != nil {
			return "", fmt.Errorf("%w: element %d", err, i)
		}
		key := m.key(row)
		if key == nil {
			return "", fmt.Errorf("%w: element %d", m.unread("its key is zero"), i)
		}
		for _, part := range []string{statement.KeyName(key), tag} {
			fmt.Fprintf(&all, "%d:%s", len(part), part)
		}
	}
	sum := sha256.Sum256([]byte(all.String()))
	return `"rows-` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`, nil
}

// versioned is a model with its version.
type versioned struct {
	schema  *schema.Schema
	version *column.Version
}

// tag is the tag of a row.
func (m *versioned) tag(row reflect.Value) (string, error) {
	if memory.IsStray(row) {
		return "", m.unread("it is of a transaction that its context has ended")
	}
	v := m.version.Read(row)
	tag := m.version.Tag(v)
	switch {
	case tag == "":
		return "", m.unread("its version is zero, or was taken back with a transaction")
	case m.version.ZeroIsLoaded() && (v.Null || v.N == 0) && m.key(row) == nil:
		return "", m.unread("its key is zero")
	}
	return tag, nil
}

// key is the primary key of a row, nil if all of it is zero.
func (m *versioned) key(row reflect.Value) []any {
	key, _ := statement.KeyOf(&gorm.Statement{Context: context.Background()}, m.schema, row)
	return key
}

func (m *versioned) unread(why string) error {
	return fmt.Errorf("%w: the %s was not read from its row, %s: %w", ErrNoVersion, m.schema.Name, why, fault.Because(gormlock.ErrVersionMissing))
}

// parsed is a model, or the error why it has no tag.
type parsed struct {
	*versioned
	err error
}

var (
	models  sync.Map // of parsed, by their types
	schemas sync.Map // of GORM
)

func modelOf(t reflect.Type) (*versioned, error) {
	if known, ok := models.Load(t); ok {
		p := known.(parsed) //nolint:forcetypeassert // it is stored below
		return p.versioned, p.err
	}
	m, err := parse(t)
	models.Store(t, parsed{m, err})
	return m, err
}

// parse reads the tags of a model. The names of its columns do not matter.
func parse(t reflect.Type) (*versioned, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %s is not a struct", ErrNoVersion, t)
	}
	s, err := schema.Parse(reflect.New(t).Interface(), &schemas, schema.NamingStrategy{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoVersion, err)
	}
	version, err := model.VersionOf(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoVersion, fault.Because(err))
	case version == nil:
		return nil, fmt.Errorf("%w: %s has no version field: tag one `gormlock:\"version\"`", ErrNoVersion, s.Name)
	}
	return &versioned{s, version}, nil
}

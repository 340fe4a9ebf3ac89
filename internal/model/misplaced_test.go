package model

import (
	"reflect"
	"strings"
	"testing"
)

type hidden struct {
	version int64 `gormlock:"version"` //nolint:unused // that is the mistake
}

type versioned struct {
	Version int64 `gormlock:"version"`
}

type Versioned struct {
	Version int64 `gormlock:"version"`
}

type outer struct{ Versioned }

// A tag that nobody would read is an error that shows the right one.
func TestV21_TagsThatNobodyReads(t *testing.T) {
	t.Parallel()
	for want, model := range map[string]any{
		"version: the tag `gormlock` is on an unexported field": hidden{},
		"hidden.version: the tag":                               struct{ hidden }{},
		"V: the tag `gormlock` is empty": struct {
			V int64 `gormlock:""`
		}{},
		"V: `gormlock` is inside the tag `gorm`, where nothing reads it: write `gormlock:\"version\"`": struct {
			V int64 `gorm:"not null;gormlock:version"`
		}{},
		"V: nothing reads the tag `gormlok`": struct {
			V int64 `gormlok:"version"`
		}{},
		"V: nothing reads the tag `gorm_lock`": struct {
			V int64 `gorm:"default:1" gorm_lock:"version"`
		}{},
		"V: nothing reads the tag `GormLock`": struct {
			V int64 `GormLock:"version"`
		}{},
		"E.V: nothing reads the tag `gormlokc`": struct {
			E struct {
				V int64 `gormlokc:"version"`
			} `gorm:"embedded"`
		}{},
		"versioned: a tag `gormlock` is inside": struct{ versioned }{},
		"Versioned: a tag `gormlock` is inside": struct {
			*Versioned `gorm:"-"`
		}{},
		"meta: a tag `gormlock` is inside": struct {
			meta Versioned `gorm:"embedded"`
		}{},
		"Meta: a tag `gormlock` is inside": struct {
			Meta Versioned `gorm:"serializer:json"`
		}{},
		"outer: a tag `gormlock` is inside": struct{ outer }{},
	} {
		err := checkPlaces(reflect.TypeOf(model))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, model := range []any{
		struct {
			V int64  `gorm:"not null;default:1" gormlock:"version" json:"v"`
			X uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
			L string `gorm:"-" goroutine:"lock" form:"lock"`
		}{},
		struct{ Next *hidden }{},
		struct{ Versioned }{},
		struct{ *Versioned }{},
		struct {
			Meta Versioned `gorm:"embedded;embeddedPrefix:meta_"`
		}{},
	} {
		if err := checkPlaces(reflect.TypeOf(model)); err != nil {
			t.Errorf("%T: %v", model, err)
		}
	}
}

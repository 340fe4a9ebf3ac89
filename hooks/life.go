package hooks

import (
	"reflect"
	"slices"
	"sync/atomic"

	"gorm.io/gorm"
)

// before and behind are GORM's own callbacks, in order: up to the one that executes the statement, and after it.
var before, behind = map[string][]string{
	"create": {begin, "gorm:before_create", "gorm:save_before_associations", "gorm:create"},
	"update": {begin, "gorm:setup_reflect_value", "gorm:before_update", "gorm:save_before_associations", "gorm:update"},
	"delete": {begin, "gorm:before_delete", "gorm:delete_before_associations", "gorm:delete"},
	"query":  {"gorm:query"},
	"row":    {"gorm:row"},
	"raw":    {"gorm:raw"},
}, map[string][]string{
	"create": {"gorm:save_after_associations", "gorm:after_create", end},
	"update": {"gorm:save_after_associations", "gorm:after_update", end},
	"delete": {"gorm:after_delete", end},
	"query":  {"gorm:preload", "gorm:after_query"},
}

// anchor is the callback before which the place is: the first of GORM's callbacks that exists, because the application may have removed some.
func (p Point) anchor(is func(name string) bool) string {
	if p.Before == "" || is(p.Before) {
		return p.Before
	}
	if names, instead := before[p.Op], p.Before; slices.Contains(names, p.Before) {
		for _, name := range names[slices.Index(names, p.Before):] {
			if instead = name; is(name) {
				break
			}
		}
		return instead
	}
	names := behind[p.Op]
	for _, name := range names[slices.Index(names, p.Before)+1:] {
		if is(name) {
			return name
		}
	}
	return ""
}

// life is the callbacks of one kind of statement.
type life struct {
	processor any
	points    []Point
	displaced func(db *gorm.DB, callback string) bool
	lost      atomic.Pointer[string] // a callback without which a place cannot be found, "" if there is none. Nil: not checked yet
}

// sorted is called by GORM whenever it sorts the callbacks.
func (l *life) sorted(*gorm.DB) bool {
	l.lost.Store(nil)
	return true
}

// inPlace calls the handler, unless a place is lost and the statement is refused because of that.
func (l *life) inPlace(handler func(*gorm.DB)) func(*gorm.DB) {
	if l.displaced == nil {
		return handler
	}
	return func(db *gorm.DB) {
		lost := l.lost.Load()
		if lost == nil {
			found := l.find()
			lost = &found
			l.lost.Store(lost)
		}
		if *lost == "" || !l.displaced(db, *lost) {
			handler(db)
		}
	}
}

// find looks for a lost callback. GORM puts each of our callbacks right before its anchor if the anchor was registered earlier. Otherwise it puts
// ours at the end, after the commit.
func (l *life) find() string {
	names, last, earlier := registered(l.processor), 0, ""
	switch {
	case len(names) == 0:
		return ""
	case slices.Contains(names, begin) && !slices.Contains(names, end):
		return end // nothing would end what begins there
	}
	for _, p := range l.points {
		own := slices.Index(names, p.Name)
		if own < 0 {
			return p.Name
		}
		if p.Before == "" {
			continue
		}
		at := slices.Index(names, p.Before)
		switch {
		case at < 0 || own < at:
			return p.Before
		case at < last:
			return earlier
		}
		last, earlier = at, p.Before
	}
	return ""
}

// registered are the names of GORM's callbacks as registered. GORM does not export them.
func registered(processor any) (names []string) {
	callbacks := reflect.ValueOf(processor).Elem().FieldByName("callbacks")
	if !callbacks.IsValid() {
		return nil
	}
	for i := range callbacks.Len() {
		names = append(names, callbacks.Index(i).Elem().FieldByName("name").String())
	}
	return names
}

package literal

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// Limits of what is remembered, and of the texts of a condition.
const (
	mostConditions = 1000 // of a program; further ones keep their parameters
	mostValues     = 8    // of a place, before it counts as varying
	mostTexts      = 32   // of a condition
)

// Conditions are the conditions of a plugin. The zero value is ready.
type Conditions struct {
	known sync.Map // question → *condition
	count atomic.Int64
}

// question is a text with parameters, about a model in a table.
type question struct {
	text  string
	model *schema.Schema // nil: there is none, or the text is about other tables too
	table string
}

// condition is one text with parameters.
type condition struct {
	places []sqltext.Parameter
	kinds  []kinds // of each place
	state  atomic.Pointer[state]
	change sync.Mutex
}

// state does not change once it is stored.
type state struct {
	kinds  []kinds           // of each place
	varies []bool            // of each place
	values [][]string        // the values seen at each place
	texts  map[string]string // the values that are written out → the text with them
}

// of returns the condition of a text, or nil if the text must stay as it is.
func (c *Conditions) of(asked question) *condition {
	if known, ok := c.known.Load(asked); ok {
		return known.(*condition) //nolint:forcetypeassert // nothing else is
	}
	if c.count.Load() >= mostConditions {
		return nil
	}
	made := &condition{}
	if places, ok := sqltext.Parameters(asked.text); ok {
		made.places, made.kinds = places, make([]kinds, len(places))
		for i := range places {
			made.kinds[i] = kindsOf(asked, places[i])
		}
	}
	made.state.Store(&state{kinds: made.kinds, varies: make([]bool, len(made.places)), values: make([][]string, len(made.places))})
	known, there := c.known.LoadOrStore(asked, made)
	if !there {
		c.count.Add(1)
	}
	return known.(*condition) //nolint:forcetypeassert // nothing else is
}

// written returns the text with constants, and says for each argument whether it is still a parameter. ok is false if all still are. The parameters
// of the text are numbered from first.
func (c *condition) written(text string, arguments []any, first int) (_ string, stays []bool, ok bool) {
	if len(c.places) != len(arguments) {
		return "", nil, false
	}
	for i, place := range c.places {
		if place.Number != first+i+1 {
			return "", nil, false
		}
	}
	var space [256]byte
	s := c.state.Load()
	key, stays := s.key(space[:0], arguments)
	if !slices.Contains(stays, false) {
		return "", nil, false
	}
	if known, ok := s.texts[string(key)]; ok {
		return known, stays, true
	}
	return c.learn(text, arguments, first)
}

// key appends the values that are written out, each at its place, and says which arguments stay parameters.
func (s *state) key(to []byte, arguments []any) (key []byte, stays []bool) {
	stays = make([]bool, len(arguments))
	for i, argument := range arguments {
		written := false
		if !s.varies[i] {
			to, written = s.kinds[i].append(to, argument)
		}
		to, stays[i] = append(to, 0), !written
	}
	return to, stays
}

// learn notes values that were not seen before.
func (c *condition) learn(text string, arguments []any, first int) (_ string, stays []bool, ok bool) {
	c.change.Lock()
	defer c.change.Unlock()
	s := c.state.Load().with(arguments)
	key, stays := s.key(nil, arguments)
	if slices.Contains(stays, false) && len(s.texts) < mostTexts {
		s.texts[string(key)] = c.write(text, arguments, stays, first)
	}
	c.state.Store(s)
	written, ok := s.texts[string(key)]
	return written, stays, ok
}

// with returns the state after the arguments were seen too.
func (s *state) with(arguments []any) *state {
	next := &state{kinds: s.kinds, varies: slices.Clone(s.varies), values: slices.Clone(s.values), texts: maps.Clone(s.texts)}
	for i, argument := range arguments {
		value, constant := s.kinds[i].append(nil, argument)
		if !constant || next.varies[i] || slices.Contains(next.values[i], string(value)) {
			continue
		}
		next.values[i] = append(slices.Clip(next.values[i]), string(value))
		if len(next.values[i]) > mostValues {
			next.vary(i)
		}
	}
	if len(next.texts) >= mostTexts { // too many combinations
		most := 0
		for i, values := range next.values {
			if len(values) > len(next.values[most]) {
				most = i
			}
		}
		next.vary(most)
	}
	if next.texts == nil {
		next.texts = map[string]string{}
	}
	return next
}

// vary makes a place a parameter from now on.
func (s *state) vary(place int) {
	s.varies[place], s.values[place], s.texts = true, nil, nil
}

// write returns the text with the values. The remaining parameters are numbered anew.
func (c *condition) write(text string, arguments []any, stays []bool, first int) string {
	out := make([]byte, 0, len(text)+64)
	end := 0
	for i, place := range c.places {
		out = append(out, text[end:place.Start]...)
		end = place.End
		if stays[i] {
			first++
			out = strconv.AppendInt(append(out, '$'), int64(first), 10)
		} else {
			out, _ = c.kinds[i].append(out, arguments[i])
		}
	}
	return string(append(out, text[end:]...))
}

package install

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Calls remembers how the previous statement of a call ended, for calls of Association(…) that execute several statements and go on after the error of
// one. GORM gives the statements of such a call one Config, and no other call has it. The zero value is ready.
type Calls struct {
	count atomic.Int64
	all   sync.Map // weak.Pointer[gorm.Config] → *Call
}

// Call is what the previous statement of a call has left.
type Call struct {
	Err   error          // its error
	Of    *schema.Schema // the model of the owners from which it takes an association
	Taken []clause.IN    // its conditions: the keys of these owners, and of the rows that it was to take
}

// Any reports whether there may be some.
func (c *Calls) Any() bool { return c.count.Load() > 0 }

// Note keeps what a statement has left.
func (c *Calls) Note(config *gorm.Config, left *Call) {
	key := weak.Make(config)
	if _, known := c.all.Swap(key, left); !known {
		c.count.Add(1)
		runtime.AddCleanup(config, c.forget, key)
	}
}

// Take returns what the previous statement has left, and forgets it. It is nil if there is nothing.
func (c *Calls) Take(config *gorm.Config) *Call {
	left, known := c.all.LoadAndDelete(weak.Make(config))
	if !known {
		return nil
	}
	c.count.Add(-1)
	return left.(*Call) //nolint:forcetypeassert // stored above
}

func (c *Calls) forget(key weak.Pointer[gorm.Config]) {
	if _, known := c.all.LoadAndDelete(key); known {
		c.count.Add(-1)
	}
}

// Saves remembers the owners that Association(…).Replace or Append has saved. To delete what they had before, GORM then executes a statement that has
// neither the owners nor the Config of the statements that saved them. They have the goroutine in common. The zero value is ready.
type Saves struct {
	count      atomic.Int64
	mu         sync.Mutex
	now, older map[Caller]*Save
}

// Caller is who calls: the goroutine, and the number of hooks around the call.
type Caller struct {
	Goroutine uint64
	Hooks     int
}

// Save is what a call has saved.
type Save struct {
	Call      weak.Pointer[gorm.Config] // the statements that save the owners of one call have one Config
	Relations []*schema.Relationship    // the belongs-to that it has saved, or may have
	Held      map[HeldRow]bool          // the rows to which its owners belong now, by any relation
}

// HeldRow is a row to which an owner belongs.
type HeldRow struct{ Table, Key string }

// mostSaved is how many are kept of each age.
const mostSaved = 10_000

// Any reports whether there may be some.
func (s *Saves) Any() bool { return s.count.Load() > 0 }

// Note keeps what a call has saved, in place of what the caller has saved before.
func (s *Saves) Note(by Caller, saved *Save) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || len(s.now) >= mostSaved {
		s.now, s.older = map[Caller]*Save{}, s.now
	}
	delete(s.older, by)
	s.now[by] = saved
	s.count.Store(int64(len(s.now) + len(s.older)))
}

// Take returns what the caller has saved last, and forgets it. It is nil if there is nothing.
func (s *Saves) Take(by Caller) *Save {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.now[by]
	if saved == nil {
		saved = s.older[by]
	}
	delete(s.now, by)
	delete(s.older, by)
	s.count.Store(int64(len(s.now) + len(s.older)))
	return saved
}

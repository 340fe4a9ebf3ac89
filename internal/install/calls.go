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

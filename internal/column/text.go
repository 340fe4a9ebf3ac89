package column

import "time"

// InTick is a time at the precision of its column, and any other value as it is.
func InTick(value any, tick time.Duration) any {
	switch t := value.(type) {
	case time.Time:
		return t.Truncate(tick)
	case *time.Time:
		if t != nil {
			return t.Truncate(tick)
		}
	}
	return value
}

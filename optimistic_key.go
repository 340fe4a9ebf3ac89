package gormlock

import (
	"database/sql/driver"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm/utils"
)

// keyName is a primary key as one string: different keys have different names, and a key has the same name whether the
// application made it or the server returned it.
func keyName(key []any) string {
	if len(key) == 1 {
		return keyPart(key[0])
	}
	var b strings.Builder
	for _, value := range key {
		part := keyPart(value)
		_, _ = b.WriteString(strconv.Itoa(len(part)))
		_ = b.WriteByte(':')
		_, _ = b.WriteString(part)
	}
	return b.String()
}

func keyPart(value any) string {
	if valuer, ok := value.(driver.Valuer); ok {
		value, _ = valuer.Value()
	}
	switch t := value.(type) {
	case time.Time:
		return strconv.FormatInt(t.UnixMicro(), 10)
	case *time.Time:
		if t != nil {
			return strconv.FormatInt(t.UnixMicro(), 10)
		}
	}
	return utils.ToStringKey(value)
}

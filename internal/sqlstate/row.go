package sqlstate

import (
	"errors"
	"reflect"
	"slices"
	"strings"
)

// IsOfARow reports whether the server refused a statement because of a row: by a CHECK, a trigger or a policy, because of a value that cannot be
// stored, or because a number cannot grow. Then nothing of the statement is done, and the same statement without this row may pass. What is wrong
// with the connection, the server or the statement itself is not of a row, nor is a wait for the table.
//
// Of most errors the code says which it is. Of the others the context does: it names the function that failed, such as a trigger, or the
// row that was waited for. It is empty for the statement itself.
func IsOfARow(err error) bool {
	state, of := Of(err), fieldsOf(err)
	switch {
	case state == "":
		return false
	case isFatal(err): // the connection has ended, wherever that was
		return false
	case of.where != "":
		return true
	case state == InsufficientPrivilege: // by a policy, unless the right is missing for all rows
		return !strings.HasPrefix(of.routine, "aclcheck_error")
	default:
		return !IsOfNoRow(err) && !InClass(err, ClassAccessOrName)
	}
}

// IsOfNoRow reports whether an error is of what has nothing to do with a row: the connection, the server, the session, a conflict with others, a
// lock, a limit of time.
func IsOfNoRow(err error) bool {
	state := Of(err)
	return slices.Contains([]string{ClassConnection, ClassResources, "25", "26", "28", "3D", "3F", "40", "55", "57", ClassSystem}, state[:min(2, len(state))])
}

// IsWithin reports whether the server failed in a function that the statement called, such as that of a trigger.
func IsWithin(err error) bool { return fieldsOf(err).where != "" }

// fields are what else the server says with an error.
type fields struct{ severity, where, routine string }

// fieldsOf reads them by the names that the errors of pgx and lib/pq have for them. Those of another driver may have none.
func fieldsOf(err error) fields {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return fields{}
	}
	value := reflect.Indirect(reflect.ValueOf(coded))
	text := func(names ...string) string {
		for _, name := range names {
			if field := value.FieldByName(name); field.IsValid() && field.Kind() == reflect.String && field.Len() > 0 {
				return field.String()
			}
		}
		return ""
	}
	if value.Kind() != reflect.Struct {
		return fields{}
	}
	return fields{text("SeverityUnlocalized", "Severity"), text("Where"), text("Routine")}
}

// Package facts is what is known of functions and packages where they are used, in other packages too: what a function does
// with what it is given, and which models, tables and triggers a program has.
package facts

import (
	"strings"

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Summary is what is known of a function where it is called, in other packages too.
type Summary struct {
	Runs     []Place  // statements run on these
	Results  []Result // one for each result
	Hands    []Hands  // functions that it is given and runs in a transaction, or under a lock
	Does     []Effect // what it does outside of the database
	Locks    []Place  // transactions in which it takes a lock
	Installs []Place  // dbs on which it installs the plugin
	Saves    []int    // parameters, pointers to structs, that it writes as a whole
	Grows    []Place  // slices that it appends to, given the db of a transaction
	Opens    []Open   // dbs that it opens without the plugin
}

// AFact makes a Summary a fact about a function.
func (*Summary) AFact() {}

func (s *Summary) String() string { return "gormlock summary" }

func (s *Summary) empty() bool {
	for _, r := range s.Results {
		if r.Known || r.Look != "" || r.Puts != 0 || r.Opened || r.Read || len(r.Fields) > 0 {
			return false
		}
	}
	return len(s.Runs)+len(s.Hands)+len(s.Does)+len(s.Locks)+len(s.Installs)+len(s.Saves)+len(s.Grows)+len(s.Opens) == 0
}

// Place names a value by where a function has it from.
type Place struct {
	Param  int    // the receiver is 0
	Global string // instead of a parameter
	Path   string // the fields read from it
}

// Fields returns the names of the fields on the path.
func (p Place) Fields() []string {
	if p.Path == "" {
		return nil
	}
	return strings.Split(p.Path[1:], ".")
}

// Hands says that the parameter Fn of a function is run there.
type Hands struct {
	Fn       int
	Kind     gormapi.Kind
	Base     Place
	HasBase  bool
	Locks    bool
	Attempts bool
	DB, Ctx  bool // the function is given the db, or a ctx that differs from the caller's
	Later    bool // not by the call, but by the function that it returns
}

// Open is a db that was opened and did not meet the plugin where that is seen.
type Open struct {
	Where string // file:line
	Kept  bool   // others have it too: in a field, a variable, by a call
}

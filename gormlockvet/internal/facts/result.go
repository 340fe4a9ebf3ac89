package facts

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Result is what is known of a function's result.
type Result struct {
	Place
	Known  bool          // it comes from the place
	Carry  gormapi.Carry // what the db carries beyond that of the place
	Puts   gormapi.Carry // the result is a scope or a clause that puts this on a db
	Opened bool          // it was opened here
	Used   bool          // what was opened has the plugin
	Read   bool          // a struct that was read from the database
	Look   string        // a db whose Error says whether a lock was got or a tagged model written: the statement
	Fields []FieldPlace  // of a struct made here, by their names
}

// equal reports whether two returns of a function say the same of its result.
func (r Result) equal(other Result) bool {
	return r.Place == other.Place && r.Known == other.Known && r.Carry == other.Carry && r.Puts == other.Puts &&
		r.Look == other.Look && r.Opened == other.Opened && r.Used == other.Used && r.Read == other.Read && slices.Equal(r.Fields, other.Fields)
}

// FieldPlace is where a field of a struct is from.
type FieldPlace struct {
	Name string // of the fields down to it, with dots between
	Place
}

// Agreed returns what is known of a result of fn, as far as all its returns agree. What one of them says is asked for.
func Agreed(fn *ssa.Function, index int, says func(ssa.Value) Result) (result Result, ok bool) {
	for _, block := range fn.Blocks {
		if block == fn.Recover || len(block.Instrs) == 0 {
			continue
		}
		returned, isReturn := block.Instrs[len(block.Instrs)-1].(*ssa.Return)
		if !isReturn || index >= len(returned.Results) {
			continue
		}
		v := returned.Results[index]
		if values.Nil(v) {
			continue
		}
		this := says(v)
		if ok && !this.equal(result) {
			return Result{}, false
		}
		result, ok = this, true
	}
	return result, ok
}

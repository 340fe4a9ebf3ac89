package statement

import (
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// What a callback cannot see by its statement it sees by who called: each of these walks relies on names of GORM's.
const (
	execute        = "gorm.(*processor).Execute"
	addVar         = "gorm.(*Statement).AddVar"
	buildCondition = "gorm.(*Statement).BuildCondition"
	save           = "gorm.(*DB).Save"
	saveByKey      = "statement.SaveByKey"

	firstOrCreate   = "gorm.(*DB).FirstOrCreate"
	firstOrInit     = "gorm.(*DB).FirstOrInit"
	saveAssociation = "gorm.(*Association).saveAssociation"
	saveChildren    = ".SaveAfterAssociations."
	copyingRead     = "gorm.execG[...]."

	executeScopes        = "gorm.(*DB).executeScopes"
	associationOperation = ".executeAssociationOperation"

	associationUpdate  = ".handleAssociation"
	associationReplace = "gorm.(*Association).Replace"
	associationDelete  = "gorm.(*Association).Delete"
	deleteAssociations = "callbacks.DeleteBeforeAssociations"
	callMethod         = "callbacks.callMethod"

	savePoint   = "gorm.(*DB).SavePoint"
	rollbackTo  = "gorm.(*DB).RollbackTo"
	transaction = "gorm.(*DB).Transaction"
)

// InSubQuery reports whether the statement being built is an argument of another. Only the caller of the dry run
// shows it.
func InSubQuery() bool {
	for function := range callers() {
		if strings.HasSuffix(function, addVar) {
			return true
		}
	}
	return false
}

// InSave reports whether the statement is a Save and not a Select("*").Updates, which looks the same to a callback.
// It is called only if no row was written: then Save must fail or insert, or GORM's own upsert would follow, while
// an update must not insert.
func InSave() bool { return ExecutedBy(save) || ExecutedBy(saveByKey) }

// InCopyingRead reports whether the row goes to a function of gorm.G that returns it by value: nobody has a pointer to what
// the caller gets.
func InCopyingRead() bool {
	for function := range callers() {
		if i := strings.LastIndex(function, copyingRead); i >= 0 {
			switch function[i+len(copyingRead):] {
			case "First", "Take", "Last":
				return true
			}
		}
	}
	return false
}

// InAssociation reports whether GORM executes the statement to save what Association(…).Append or Replace was given.
func InAssociation() bool { return executedFor(saveAssociation) }

// InAssociationDelete reports whether GORM executes the statement for Association(…).Delete.
func InAssociationDelete() bool { return executedFor(associationDelete) }

// InFirstOrCreate reports whether FirstOrCreate looks for a row, or updates the one that it has found.
func InFirstOrCreate() bool { return executedFor(firstOrCreate) }

// InFirstOrInit reports whether FirstOrInit looks for a row.
func InFirstOrInit() bool { return executedFor(firstOrInit) }

// executedFor reports whether the function of this name calls the one that has GORM execute the statement.
func executedFor(name string) bool {
	run := 0
	for function := range callers() {
		switch {
		case strings.HasSuffix(function, execute):
			run = 1
		case run == 2:
			return strings.HasSuffix(function, name)
		case run == 1:
			run = 2
		}
	}
	return false
}

// InAssociationOperation reports whether Set(clause.Association{…}) of gorm.G makes the statement that a clause is
// given to: GORM then uses sessions of its own, which do not have the clause. A statement that a callback or a hook makes
// while GORM executes one of those has it. Every clause asks, so the answer for a place in the program is kept.
func InAssociationOperation() bool {
	var pcs [12]uintptr
	inScope := false
	for _, pc := range pcs[:runtime.Callers(3, pcs[:])] {
		kind, known := operations.Load(pc)
		if !known {
			kind = placeOf(pc)
			operations.Store(pc, kind)
		}
		switch kind {
		case associationOperation:
			return true
		case executeScopes:
			inScope = true
		case execute:
			if !inScope {
				return false
			}
		}
	}
	return false
}

var operations sync.Map

// placeOf is which of the functions that [InAssociationOperation] looks for a place in the program is in, if any.
func placeOf(pc uintptr) string {
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		frame, more := frames.Next()
		for _, name := range []string{associationOperation, executeScopes, execute} {
			if strings.HasSuffix(frame.Function, name) {
				return name
			}
		}
		if !more {
			return ""
		}
	}
}

// InNesting reports whether GORM sets a savepoint, or rolls back to one, for a nested transaction: it does not get the
// clauses of the db that the transaction began from.
func InNesting() bool {
	called := false
	for function := range callers() {
		if called { // the program may call it too
			return strings.HasSuffix(function, transaction) || strings.Contains(function, transaction+".func")
		}
		called = strings.HasSuffix(function, savePoint) || strings.HasSuffix(function, rollbackTo)
	}
	return false
}

// InHook reports whether a hook waits for the statement.
func InHook() bool {
	for function := range callers() {
		if strings.HasSuffix(function, callMethod) {
			return true
		}
	}
	return false
}

// HookDepth is the number of hooks that wait for the statement.
func HookDepth() (n int) {
	for function := range callers() {
		if strings.HasSuffix(function, callMethod) {
			n++
		}
	}
	return n
}

// InAppend reports whether Association(…).Append or Replace waits for the statement, and no hook that these have called.
func InAppend() bool { return madeFor(saveAssociation) }

// InUnlinking reports whether Association(…).Delete, Replace or Clear waits for the statement, and no hook that these have called.
func InUnlinking() bool { return madeFor(associationReplace, associationDelete) }

// InDeleteOfOwner reports whether a delete has GORM delete what belongs to its struct, and no hook does so.
func InDeleteOfOwner() bool { return madeFor(deleteAssociations) }

// madeFor reports whether one of the functions of these names waits for the statement, and no hook that it has called.
func madeFor(names ...string) bool {
	for function := range callers() {
		if strings.HasSuffix(function, callMethod) {
			return false
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(function, name) }) {
			return true
		}
	}
	return false
}

// InLinking reports whether GORM stores the rows of a join table, which link what it has saved.
func InLinking() bool {
	run := 0
	for function := range callers() {
		switch {
		case run == 2:
			return strings.Contains(function, saveChildren)
		case run == 1, strings.HasSuffix(function, execute):
			run++
		}
	}
	return false
}

// InClear reports whether Association(…).Clear has GORM execute the update of what belongs to another struct. By then GORM
// has emptied its foreign keys in memory. GORM calls UpdateColumns, which skips hooks.
func InClear(stmt *gorm.Statement) bool {
	columns, ok := stmt.Dest.(map[string]any)
	if !ok || !stmt.SkipHooks || len(columns) == 0 {
		return false
	}
	for _, value := range columns {
		if value != nil {
			return false
		}
	}
	return ExecutedIn(associationReplace)
}

// InConditions reports whether conditions are built for a statement that is not the one GORM executes: a hook, or a
// plugin, asks something with the conditions of the statement that runs.
func InConditions() bool {
	group := false
	for function := range callers() {
		if !group && strings.HasSuffix(function, execute) {
			return false
		}
		group = group || strings.HasSuffix(function, buildCondition)
		if group && strings.HasSuffix(function, execute) {
			return true
		}
	}
	return false
}

// InGroup reports whether GORM runs the scopes of a db whose conditions it takes for another statement.
func InGroup() bool {
	scopes := false
	for function := range callers() {
		if scopes {
			return strings.HasSuffix(function, buildCondition)
		}
		scopes = strings.HasSuffix(function, executeScopes)
	}
	return false
}

// ExecutedBy reports whether the function of this name has GORM execute the statement, and not something that it called.
func ExecutedBy(name string) bool {
	run := false
	for function := range callers() {
		if run {
			return strings.HasSuffix(function, name)
		}
		run = strings.HasSuffix(function, execute)
	}
	return false
}

// ExecutedIn reports whether the function of this name waits for the statement.
func ExecutedIn(name string) bool {
	for function := range callers() {
		if strings.HasSuffix(function, name) {
			return true
		}
	}
	return false
}

// callers are the functions that wait for the caller of this one, the nearest first.
func callers() iter.Seq[string] {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	return func(yield func(string) bool) {
		for {
			frame, more := frames.Next()
			if !yield(frame.Function) || !more {
				return
			}
		}
	}
}

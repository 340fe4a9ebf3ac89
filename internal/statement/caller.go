package statement

import (
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// If the statement does not show a callback what it needs to know, the call stack does. These are the names of GORM's functions to look for.
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
	operationForOwners   = ".handleAssociationForOwners"
	operationOfCreate    = ".setCreateOrUpdateG[...].Create"

	associationUpdate  = ".handleAssociation"
	associationInTx    = ".handleAssociation.func1"
	associationReplace = "gorm.(*Association).Replace"
	associationDelete  = "gorm.(*Association).Delete"
	deleteAssociations = "callbacks.DeleteBeforeAssociations"
	callMethod         = "callbacks.callMethod"

	savePoint   = "gorm.(*DB).SavePoint"
	rollbackTo  = "gorm.(*DB).RollbackTo"
	transaction = "gorm.(*DB).Transaction"
)

// InSubQuery reports whether the statement being built is an argument of another one. Only the caller of the dry run
// shows that.
func InSubQuery() bool {
	for function := range callers() {
		if strings.HasSuffix(function, addVar) {
			return true
		}
	}
	return false
}

// InSave reports whether the statement is a Save and not a Select("*").Updates, which looks the same to a callback.
// It is called only if no row was written. Then a Save must fail or insert, because GORM's own upsert would follow.
// An update must not insert.
func InSave() bool { return ExecutedBy(save) || ExecutedBy(saveByKey) }

// InCopyingRead reports whether a function of gorm.G reads the row and returns it by value. Then gormlock has no pointer to the
// caller's struct.
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

// InAssociation reports whether GORM executes the statement to save the arguments of Association(…).Append or Replace.
func InAssociation() bool { return executedFor(saveAssociation) }

// InAssociationDelete reports whether GORM executes the statement for Association(…).Delete.
func InAssociationDelete() bool { return executedFor(associationDelete) }

// InOperation reports whether GORM executes the statement for Set(clause.Association{…}) of gorm.G, to update, unlink or delete. alone reports whether
// it is the only statement: a delete of a belongs-to has two, in a transaction.
func InOperation() (is, alone bool) {
	alone = executedFor(associationUpdate)
	return alone || executedFor(associationInTx), alone
}

// InOperationForOwners reports whether GORM executes the statement for an OpCreate of gorm.G, which it does for one owner after the other.
func InOperationForOwners() bool { return ExecutedIn(operationForOwners) }

// InOperationOfCreate reports whether GORM executes the statement for an association operation of Set(…).Create of gorm.G.
func InOperationOfCreate() bool {
	called := false
	for function := range callers() {
		if called {
			return strings.HasSuffix(function, operationOfCreate)
		}
		called = strings.HasSuffix(function, associationOperation)
	}
	return false
}

// InReplace reports whether GORM executes the statement for Association(…).Replace, Append or Clear, and not to save their arguments.
func InReplace() bool { return executedFor(associationReplace) }

// InFirstOrCreate reports whether FirstOrCreate looks for a row, or updates the one that it has found.
func InFirstOrCreate() bool { return executedFor(firstOrCreate) }

// InFirstOrInit reports whether FirstOrInit looks for a row.
func InFirstOrInit() bool { return executedFor(firstOrInit) }

// executedFor reports whether the function of this name called the function that made GORM execute the statement.
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

// InAssociationOperation reports whether a clause is given to a statement of Set(clause.Association{…}) of gorm.G. GORM
// then writes in sessions of its own, which do not have the clause. Statements that a callback or a hook makes meanwhile
// do not count. Every clause asks this, so the answer for each program counter is kept.
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

// placeOf is the function that a program counter is in, if it is one that [InAssociationOperation] looks for.
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

// InNesting reports whether GORM sets a savepoint, or rolls back to one, for a nested transaction. Such a statement must not get the
// clauses of the db from which the transaction began.
func InNesting() bool {
	called := false
	for function := range callers() {
		if called { // the caller decides: the program can call SavePoint and RollbackTo too
			return strings.HasSuffix(function, transaction) || strings.Contains(function, transaction+".func")
		}
		called = strings.HasSuffix(function, savePoint) || strings.HasSuffix(function, rollbackTo)
	}
	return false
}

// InHook reports whether the statement runs inside of a hook.
func InHook() bool {
	for function := range callers() {
		if strings.HasSuffix(function, callMethod) {
			return true
		}
	}
	return false
}

// HookDepth is the number of nested hooks inside of which the statement runs.
func HookDepth() (n int) {
	for function := range callers() {
		if strings.HasSuffix(function, callMethod) {
			n++
		}
	}
	return n
}

// InAppend reports whether the statement runs inside of Association(…).Append or Replace, and not in a hook inside of these.
func InAppend() bool { return madeFor(saveAssociation) }

// InUnlinking reports whether the statement runs inside of Association(…).Delete, Replace or Clear, and not in a hook inside of these.
func InUnlinking() bool { return madeFor(associationReplace, associationDelete) }

// InDeleteOfOwner reports whether GORM deletes the associations of a struct that is being deleted, and not a hook inside of that.
func InDeleteOfOwner() bool { return madeFor(deleteAssociations) }

// madeFor reports whether the statement runs inside of one of these functions, and not in a hook inside of that.
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

// InLinking reports whether GORM stores the rows of a join table after it has saved the structs that they link.
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

// InClear reports whether the statement is the update by which Association(…).Clear sets the foreign keys of a struct to NULL. By then GORM
// has emptied these foreign keys in memory. GORM calls UpdateColumns, which skips hooks.
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

// InConditions reports whether conditions are built for another statement than the running one: a hook or a
// plugin uses the conditions of the running statement in a statement of its own.
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

// InGroup reports whether GORM runs the scopes of a db because it takes the db's conditions into another statement.
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

// ExecutedBy reports whether the function of this name itself made GORM execute the statement, and not a function that it called.
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

// ExecutedIn reports whether the statement runs inside of the function of this name.
func ExecutedIn(name string) bool {
	for function := range callers() {
		if strings.HasSuffix(function, name) {
			return true
		}
	}
	return false
}

// callers are the names of the functions on the call stack above the caller of this one, the nearest first.
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

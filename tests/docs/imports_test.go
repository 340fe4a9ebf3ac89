package docs

// What snippets in the documents import and no test does, so that this module requires it.
import (
	_ "github.com/gormlock/gormlock/gormlocktest"
	_ "github.com/gormlock/gormlock/observe/otelobserve"
)

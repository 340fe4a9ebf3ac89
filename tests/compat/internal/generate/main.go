// Generate writes package query: go generate ./... in tests/compat.
package main

import (
	"gorm.io/gen"

	"github.com/gormlock/gormlock/tests/compat/internal/model"
)

func main() {
	g := gen.NewGenerator(gen.Config{OutPath: "internal/query"})
	g.ApplyBasic(model.Account{})
	g.Execute()
}

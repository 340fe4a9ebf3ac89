// Command gormlockvet finds misuses of gormlock and GORM that no program can notice while it runs.
//
//	go vet -vettool=$(which gormlockvet) ./...
//	gormlockvet -fix ./...
//
// See docs/gormlockvet.md for what it finds and how a finding is silenced.
package main

import (
	"flag"

	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/gormlock/gormlock/gormlockvet"
)

func main() {
	flag.BoolFunc("testfiles", "report findings in files that end in _test.go too", func(value string) error {
		gormlockvet.IncludeTests(value != "false")
		return nil
	})
	multichecker.Main(gormlockvet.Analyzers()...)
}

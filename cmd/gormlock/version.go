package main

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
)

// version prints from what this binary was built.
type version struct{}

func (*version) Usage() cli.Usage {
	return cli.Usage{Name: "version", Summary: "what this binary was built from"}
}

func (*version) Flags(*flag.FlagSet) {}

func (*version) Run(_ context.Context, p *cli.Program, _ []string) error {
	p.Printf("gormlock %s %s %s/%s\n", built(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// built is the version of the module, or the commit if it was built in a checkout.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	text := info.Main.Version
	if text == "" {
		text = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && text == "(devel)" {
			text += " " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return text
}

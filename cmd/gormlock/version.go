package main

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
)

// version prints what this binary was built from.
type version struct{}

func (*version) usage() usage {
	return usage{name: "version", summary: "what this binary was built from"}
}

func (*version) flags(*flag.FlagSet) {}

func (*version) run(_ context.Context, p *program, _ []string) error {
	p.printf("gormlock %s %s %s/%s\n", built(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// built is the version of the module, and the commit where it was built in a checkout.
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

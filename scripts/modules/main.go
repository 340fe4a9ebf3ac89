// Command modules keeps the modules of this repository in step. It is run at the root:
//
//	go run ./scripts/modules check           names what is out of step, and fails
//	go run ./scripts/modules sync            brings all in step with the root, and tidies them
//	go run ./scripts/modules release v1.2.3  what they require of each other, before that version is tagged in each
//	go run ./scripts/modules tags v1.2.3     the tags of that release
//	go run ./scripts/modules proxy DIR v1.2.3
//	                                         writes the tree as that version, for GOPROXY=file://DIR: to try a release
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gormlock/gormlock/internal/modules"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		problems, err := modules.Check(ctx, ".")
		for _, p := range problems {
			fmt.Fprintln(os.Stderr, p)
		}
		if err == nil && len(problems) > 0 {
			err = errors.New("out of step: go run ./scripts/modules sync")
		}
		return err
	case len(args) == 1 && args[0] == "sync":
		return modules.Sync(ctx, ".")
	case len(args) == 2 && args[0] == "release":
		return modules.Release(ctx, ".", args[1])
	case len(args) == 2 && args[0] == "tags":
		fmt.Println(strings.Join(modules.Tags(args[1]), "\n"))
		return nil
	case len(args) == 3 && args[0] == "proxy":
		return modules.Proxy(ctx, ".", args[1], args[2])
	}
	return errors.New("usage: go run ./scripts/modules check | sync | release VERSION | tags VERSION | proxy DIR VERSION")
}

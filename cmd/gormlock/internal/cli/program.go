// Package cli is what the commands have in common: their descriptions, their flags, and where they print.
package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode"
	"unicode/utf16"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// Program is one run.
type Program struct {
	In, Stdout, Stderr *os.File
	Out                *bufio.Writer // to stdout
	Style              terminal.Style
	Args               []string // after the name of the program
}

var (
	// ErrFound says that the command found what it looks for, and printed it.
	ErrFound = errors.New("found")
	// ErrNotDone says that the user, or the state of the thing, did not confirm it.
	ErrNotDone = errors.New("not done")
	// ErrHelp says that the user asked for help, which was printed.
	ErrHelp = errors.New("help")
)

// Complain writes one line to standard error. It leaves out arguments that may be connection strings.
func (p *Program) Complain(err error) {
	_, _ = fmt.Fprintln(p.Stderr, "gormlock: "+terminal.OneLine(withoutSecrets(terminal.TrimPrefix(err.Error()), p.Args)))
}

// Printf writes to standard output. Errors are kept until the end.
func (p *Program) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Out, format, args...)
}

// Width is the width of the terminal, or 0 if there is none.
func (p *Program) Width() int {
	if !terminal.Is(p.Stdout) {
		return 0
	}
	columns, _ := terminal.Size(p.Stdout)
	return columns
}

// JSON prints a value, indented. Characters that cannot be printed are escaped.
func (p *Program) JSON(value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	for _, r := range text.String() {
		if unicode.IsPrint(r) || r == '\n' {
			_, _ = p.Out.WriteRune(r) // errors are kept until the end
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			p.Printf(`\u%04x`, unit)
		}
	}
	return nil
}

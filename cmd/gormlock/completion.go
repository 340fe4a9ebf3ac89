package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/key"
)

// completion prints a script that makes a shell complete the words of this program.
type completion struct{}

var shells = []string{"bash", "zsh", "fish"}

func (*completion) Usage() cli.Usage {
	return cli.Usage{
		Name: "completion", Args: "bash|zsh|fish", AtLeast: 1, AtMost: 1, Summary: "a script that completes commands and flags in a shell",
		Details: `
Install it
  bash  gormlock completion bash >/etc/bash_completion.d/gormlock
        or in ~/.bashrc: source <(gormlock completion bash)
  zsh   gormlock completion zsh >"${fpath[1]}/_gormlock"
  fish  gormlock completion fish >~/.config/fish/completions/gormlock.fish`,
	}
}

func (*completion) Flags(*flag.FlagSet) {}

func (*completion) Run(_ context.Context, p *cli.Program, args []string) error {
	switch args[0] {
	case "bash":
		p.Printf("%s", bashScript())
	case "zsh":
		p.Printf("%s", zshScript())
	case "fish":
		p.Printf("%s", fishScript())
	default:
		return fmt.Errorf("there is no script for the shell %q%s: bash, zsh and fish have one", args[0], cli.DidYouMean(args[0], shells))
	}
	return nil
}

// wordsAfter are the words that can follow a command, besides its flags.
func wordsAfter(name string) []string {
	switch name {
	case "completion":
		return shells
	case "help":
		return commandNames()
	}
	return nil
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.Usage().Name)
	}
	return names
}

func flagNames(c cli.Command) []string {
	names := []string{"--help"}
	cli.FlagsOf(c).VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

func bashScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# bash completion of gormlock
_gormlock() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='%s'
	elif [ "$before" = --scheme ]; then
		words='%s'
	else
		case ${COMP_WORDS[1]} in
`, strings.Join(commandNames(), " "), strings.Join(key.SchemeNames(), " "))
	for _, c := range commands() {
		name := c.Usage().Name
		fmt.Fprintf(&b, "\t\t%s) words='%s' ;;\n", name, strings.Join(append(wordsAfter(name), flagNames(c)...), " "))
	}
	b.WriteString(`		*) return ;;
		esac
	fi
	while IFS='' read -r; do COMPREPLY+=("$REPLY"); done < <(compgen -W "$words" -- "$word")
}
complete -F _gormlock gormlock
`)
	return b.String()
}

func zshScript() string {
	var b strings.Builder
	b.WriteString("#compdef gormlock\n_gormlock() {\n\tlocal -a words_here\n\tif (( CURRENT == 2 )); then\n\t\twords_here=(\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "\t\t\t'%s:%s'\n", c.Usage().Name, shellQuoted(c.Usage().Summary))
	}
	fmt.Fprintf(&b, "\t\t)\n\t\t_describe command words_here\n\t\treturn\n\tfi\n\tif [[ $words[CURRENT-1] == --scheme ]]; then\n\t\tcompadd -- %s\n\t\treturn\n\tfi\n\tcase $words[2] in\n",
		strings.Join(key.SchemeNames(), " "))
	for _, c := range commands() {
		name := c.Usage().Name
		fmt.Fprintf(&b, "\t%s)\n\t\twords_here=(\n", name)
		for _, word := range wordsAfter(name) {
			fmt.Fprintf(&b, "\t\t\t'%s'\n", word)
		}
		b.WriteString("\t\t\t'--help:all about it'\n")
		cli.FlagsOf(c).VisitAll(func(f *flag.Flag) {
			fmt.Fprintf(&b, "\t\t\t'--%s:%s'\n", f.Name, shellQuoted(flagSummary(f)))
		})
		b.WriteString("\t\t)\n\t\t_describe -o argument words_here ;;\n")
	}
	b.WriteString("\tesac\n}\nif [ \"$funcstack[1]\" = _gormlock ]; then _gormlock \"$@\"; else compdef _gormlock gormlock; fi\n")
	return b.String()
}

func fishScript() string {
	var b strings.Builder
	b.WriteString("# fish completion of gormlock\ncomplete -c gormlock -f\n")
	for _, c := range commands() {
		u := c.Usage()
		fmt.Fprintf(&b, "complete -c gormlock -n __fish_use_subcommand -a %s -d '%s'\n", u.Name, shellQuoted(u.Summary))
		on := fmt.Sprintf("-n '__fish_seen_subcommand_from %s'", u.Name)
		if more := wordsAfter(u.Name); more != nil {
			fmt.Fprintf(&b, "complete -c gormlock %s -a '%s'\n", on, strings.Join(more, " "))
		}
		fmt.Fprintf(&b, "complete -c gormlock %s -l help -d 'all about it'\n", on)
		cli.FlagsOf(c).VisitAll(func(f *flag.Flag) {
			takes := ""
			if value, _ := flag.UnquoteUsage(f); value != "" {
				takes = " -x"
			}
			if f.Name == "scheme" {
				takes += " -a '" + strings.Join(key.SchemeNames(), " ") + "'"
			}
			fmt.Fprintf(&b, "complete -c gormlock %s -l %s%s -d '%s'\n", on, f.Name, takes, shellQuoted(flagSummary(f)))
		})
	}
	return b.String()
}

// flagSummary is the first line of a flag's help.
func flagSummary(f *flag.Flag) string {
	_, text := flag.UnquoteUsage(f)
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// shellQuoted is text inside single quotes. All three shells read it the same, because no summary contains a single quote. A colon would end a word
// in zsh.
func shellQuoted(text string) string {
	return strings.NewReplacer("'", "", ":", " -", "`", "").Replace(text)
}

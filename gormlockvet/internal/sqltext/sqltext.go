// Package sqltext reads from the text of an SQL statement which tables it writes, and which of their columns.
package sqltext

import (
	"slices"
	"strings"
)

// Unknown stands in a text for a part that the compiler does not know.
const Unknown = "\x00"

// Verb is what is done with rows.
type Verb uint8

// The verbs. An Upsert is the DO UPDATE of an INSERT.
const (
	Update Verb = iota + 1
	Insert
	Upsert
	Delete
)

// Write is one table that a statement writes.
type Write struct {
	Verb    Verb
	Table   string   // with its schema, if that is written
	Columns []string // that are set, or inserted
	Known   bool     // these are all
}

// Writes returns what the statements of a text write, in the order of the text.
func Writes(text string) []Write {
	p := parser{tokens: tokens(text)}
	for p.at = 0; p.at < len(p.tokens); p.at++ {
		switch {
		case p.word("UPDATE") && !p.after("FOR", "KEY", "DO", "ON", "OR", "BEFORE", "AFTER", "OF", "GRANT", "THEN"):
			p.update()
		case p.word("UPDATE") && p.after("THEN") && p.merged != "":
			p.at++
			p.set(Update, p.merged)
		case p.word("INSERT") && p.next("INTO"):
			p.insert()
		case p.word("DELETE") && p.next("FROM"):
			p.at += 2
			if p.word("ONLY") {
				p.at++
			}
			if table := p.name(); table != "" {
				p.found = append(p.found, Write{Verb: Delete, Table: table, Known: true})
			}
			p.at--
		case p.word("MERGE") && p.next("INTO"):
			p.at += 2
			p.merged = p.name()
			p.at--
		}
	}
	return p.found
}

// Mentions reports whether a name stands anywhere in the text.
func Mentions(text, name string) bool {
	return slices.ContainsFunc(tokens(text), func(t token) bool { return t.kind == identifier && strings.EqualFold(t.text, name) })
}

type parser struct {
	tokens []token
	at     int
	merged string
	found  []Write
}

func (p *parser) is(at int, word string) bool {
	return at >= 0 && at < len(p.tokens) && p.tokens[at].kind == identifier && !p.tokens[at].quoted && strings.EqualFold(p.tokens[at].text, word)
}

func (p *parser) word(word string) bool { return p.is(p.at, word) }

func (p *parser) next(word string) bool { return p.is(p.at+1, word) }

func (p *parser) after(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return p.is(p.at-1, w) })
}

func (p *parser) mark(at int, text string) bool {
	return at >= 0 && at < len(p.tokens) && p.tokens[at].kind == punctuation && p.tokens[at].text == text
}

// name reads a table's name, empty where there is none or a part of it is not known.
func (p *parser) name() string {
	var parts []string
	for p.at < len(p.tokens) && p.tokens[p.at].kind == identifier {
		parts = append(parts, p.tokens[p.at].text)
		p.at++
		if !p.mark(p.at, ".") {
			break
		}
		p.at++
	}
	if p.at < len(p.tokens) && p.tokens[p.at].kind == unknown && p.tokens[p.at].glued {
		return ""
	}
	return strings.Join(parts, ".")
}

func (p *parser) update() {
	begin := p.at
	p.at++
	if p.word("ONLY") {
		p.at++
	}
	table := p.name()
	if p.word("AS") {
		p.at++
	}
	if !p.word("SET") && p.at < len(p.tokens) && p.tokens[p.at].kind == identifier {
		p.at++ // its alias
	}
	if table == "" || !p.word("SET") {
		p.at = begin
		return
	}
	p.set(Update, table)
}

// set reads the columns of SET, up to what follows them.
func (p *parser) set(verb Verb, table string) {
	w := Write{Verb: verb, Table: table, Known: true}
	depth, begins := 0, true
	for p.at++; p.at < len(p.tokens); p.at++ {
		t := p.tokens[p.at]
		switch {
		case p.mark(p.at, "(") && begins && depth == 0:
			for p.at++; p.at < len(p.tokens) && !p.mark(p.at, ")"); p.at++ {
				if p.tokens[p.at].kind == identifier {
					w.Columns = append(w.Columns, p.tokens[p.at].text)
				}
			}
			begins = false
		case p.mark(p.at, "("):
			depth++
		case p.mark(p.at, ")"):
			depth--
		case depth == 0 && (p.word("WHERE") || p.word("FROM") || p.word("RETURNING") || p.word("WHEN") || p.mark(p.at, ";")):
			depth = -1
		case p.mark(p.at, ",") && depth == 0:
			begins = true
		case begins && t.kind == identifier:
			name := t.text
			for p.mark(p.at+1, ".") {
				p.at += 2
				if p.at < len(p.tokens) {
					name = p.tokens[p.at].text
				}
			}
			w.Columns = append(w.Columns, name)
			begins = false
		case t.kind == unknown && (begins || !t.glued):
			w.Known = w.Known && !begins && p.valueOnly()
			begins = false
		}
		if depth < 0 {
			break
		}
	}
	w.Known = w.Known && len(w.Columns) > 0
	p.found = append(p.found, w)
}

// valueOnly reports whether a part that is not known stands for a value: = comes before it, and no more than a comma, a
// parenthesis or the end of the list after it.
func (p *parser) valueOnly() bool {
	return p.at > 0 && p.tokens[p.at-1].kind == punctuation &&
		(p.mark(p.at+1, ",") || p.mark(p.at+1, ")") || p.is(p.at+1, "WHERE") || p.is(p.at+1, "FROM"))
}

func (p *parser) insert() {
	p.at += 2
	table := p.name()
	if table == "" {
		p.at--
		return
	}
	if p.word("AS") {
		p.at += 2
	}
	w := Write{Verb: Insert, Table: table}
	if p.mark(p.at, "(") {
		w.Known = true
		for p.at++; p.at < len(p.tokens) && !p.mark(p.at, ")"); p.at++ {
			switch p.tokens[p.at].kind {
			case identifier:
				w.Columns = append(w.Columns, p.tokens[p.at].text)
			case unknown:
				w.Known = false
			default: // a comma
			}
		}
	}
	p.found = append(p.found, w)
	for at := p.at; at < len(p.tokens) && !p.mark(at, ";"); at++ {
		if p.is(at, "DO") && p.is(at+1, "UPDATE") && p.is(at+2, "SET") {
			p.at = at + 2
			p.set(Upsert, table)
			return
		}
	}
	p.at--
}

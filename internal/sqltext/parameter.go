package sqltext

// Parameter is one $n of a text.
type Parameter struct {
	Start, End int // in the text
	Number     int
}

// Parameters finds the parameters of a text. It is not ok where a setting of the server decides which of them are parts of
// a string, or where the text does not end.
func Parameters(text string) (found []Parameter, ok bool) {
	l := lexer{text: text}
	for {
		t := l.next()
		if t.kind == eof {
			return found, !l.backslash && !l.unterminated
		}
		if text[t.start] != '$' || t.end-t.start > 1 { // a string in dollar quotes
			continue
		}
		p := Parameter{Start: t.start, End: t.end}
		for p.End < len(text) && text[p.End] >= '0' && text[p.End] <= '9' && p.Number < 1<<20 {
			p.Number = 10*p.Number + int(text[p.End]-'0')
			p.End++
		}
		if p.Number > 0 {
			found = append(found, p)
		}
	}
}

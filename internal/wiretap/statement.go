package wiretap

import "bytes"

// statements knows the texts behind the names that a client gave its prepared
// statements and portals.
type statements struct {
	prepared map[string]string
	portals  map[string]string
}

// read takes a message of the client. A message that executes something yields its
// text; parsed is the text of a Parse.
func (s *statements) read(kind byte, body []byte) (executed string, executes bool, parsed string, parses bool) {
	switch kind {
	case msgQuery:
		text, _ := cString(body)
		return text, true, "", false
	case msgParse:
		name, rest := cString(body)
		text, _ := cString(rest)
		set(&s.prepared, name, text)
		return "", false, text, true
	case msgBind:
		portal, rest := cString(body)
		name, _ := cString(rest)
		set(&s.portals, portal, s.prepared[name])
	case msgExecute:
		portal, _ := cString(body)
		return s.portals[portal], true, "", false
	case msgClose:
		if len(body) > 0 {
			name, _ := cString(body[1:])
			if body[0] == 'S' {
				delete(s.prepared, name)
			} else {
				delete(s.portals, name)
			}
		}
	}
	return "", false, "", false
}

func set(m *map[string]string, name, text string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = text
}

func cString(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}

package models

import "strings"

// access is what a write or a read may do with a field.
type access struct{ Creatable, Updatable, Readable bool }

func (a access) none() bool { return a == access{} }

func (a access) full() bool { return a == access{true, true, true} }

// accessOf reads the permissions of a tag.
func accessOf(settings map[string]string) access {
	a := access{true, true, true}
	if ignored(settings["-"]) {
		a = access{}
	}
	if value, ok := settings["->"]; ok {
		a = access{Readable: !strings.EqualFold(value, "false")}
	}
	if value, ok := settings["<-"]; ok {
		a.Creatable, a.Updatable = true, true
		if value != "<-" {
			a.Creatable, a.Updatable = strings.Contains(value, "create"), strings.Contains(value, "update")
		}
	}
	return a
}

// ignored reports whether GORM looks at no value of a field whose tag has the word "-".
func ignored(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	return value == "-" || value == "all"
}

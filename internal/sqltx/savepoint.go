package sqltx

import (
	"regexp"
	"strings"
)

// savepointCommand matches a savepoint command: the verb, and the name as it is written.
var savepointCommand = regexp.MustCompile(
	`(?is)^\s*(?:(savepoint)|(release)(?:\s+savepoint)?|rollback(?:\s+(?:work|transaction))?\s+to(?:\s+savepoint)?)\s+("(?:[^"]|"")+"|[^\s";]+)\s*$`)

// watchSavepoints tells the watcher of the savepoint commands in a text that was executed.
func watchSavepoints(watcher Watcher, query string) {
	if query == "" || !strings.ContainsRune("SsRr \t\r\n", rune(query[0])) {
		return
	}
	for command := range strings.SplitSeq(query, ";") {
		words := savepointCommand.FindStringSubmatch(command)
		switch {
		case words == nil:
		case words[1] != "":
			watcher.Savepoint(folded(words[3]))
		case words[2] != "":
			watcher.Release(folded(words[3]))
		default:
			watcher.RollbackTo(folded(words[3]))
		}
	}
}

// folded is the name as the server understands it.
func folded(name string) string {
	if quoted, ok := strings.CutPrefix(name, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, `"`), `""`, `"`)
	}
	return strings.ToLower(name)
}

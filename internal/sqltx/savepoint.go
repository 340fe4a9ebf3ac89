package sqltx

import "strings"

// watchSavepoints tells the watcher of the savepoint commands in a text that was executed.
func watchSavepoints(watcher Watcher, query string) {
	if query == "" || !strings.ContainsRune("SsRr \t\n", rune(query[0])) {
		return
	}
	for command := range strings.SplitSeq(query, ";") {
		words := strings.Fields(command)
		for i, word := range words {
			words[i] = strings.ToUpper(word)
		}
		switch {
		case len(words) == 2 && words[0] == "SAVEPOINT":
			watcher.Savepoint(name(command))
		case len(words) >= 3 && words[0] == "ROLLBACK" && (words[1] == "TO" || len(words) >= 4 && words[2] == "TO"):
			watcher.RollbackTo(name(command))
		case len(words) >= 2 && words[0] == "RELEASE":
			watcher.Release(name(command))
		}
	}
}

// name is the last word of a savepoint command, as the server folds it.
func name(command string) string {
	words := strings.Fields(command)
	last := words[len(words)-1]
	if strings.HasPrefix(last, `"`) {
		return strings.Trim(last, `"`)
	}
	return strings.ToLower(last)
}
